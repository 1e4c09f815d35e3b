// config.json, and the same bytes as generation_config.json.
#include "core/model/config.h"
#include "tests/fuzz/fuzz.h"

QWASM_FUZZ_TARGET(config) {
  qwasm::Json json;
  if (!qwasm::parse_json_object(bytes, "config.json", &json).ok()) return;
  qwasm::Config config;
  if (!qwasm::parse_config(json, &config).ok()) return;
  std::vector<int64_t> ends;
  (void)qwasm::find_end_tokens(config, json, &ends);
}
