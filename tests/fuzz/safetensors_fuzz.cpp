// The header of a safetensors file behind its eight bytes of length, and the index of shards.
#include "core/files/safetensors.h"
#include "tests/fuzz/fuzz.h"

QWASM_FUZZ_TARGET(safetensors) {
  const auto size = static_cast<int64_t>(bytes.size());
  int64_t length = 0;
  if (qwasm::parse_safetensors_prefix(bytes.first(bytes.size() < 8 ? bytes.size() : 8), "m", size, &length).ok() && length <= size - 8) {
    qwasm::TensorTable table;
    (void)qwasm::parse_safetensors_header(bytes.subspan(8, static_cast<size_t>(length)), "m", size, &table);
  }
  std::map<std::string, std::string> weight_map;
  (void)qwasm::parse_shard_index(bytes, "m", &weight_map);
}
