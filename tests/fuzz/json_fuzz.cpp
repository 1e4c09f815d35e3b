// JSON by both of the core's readers, and back to text.
#include "core/files/json_view.h"
#include "core/text/json_tree.h"
#include "tests/fuzz/fuzz.h"

QWASM_FUZZ_TARGET(json) {
  qwasm::Json json;
  if (qwasm::parse_json_object(bytes, "file", &json).ok()) qwasm::to_text(json);
  qwasm::JsonNode root;
  if (qwasm::parse_json_tree("file", bytes, nullptr, &root).ok()) root.describe();
}
