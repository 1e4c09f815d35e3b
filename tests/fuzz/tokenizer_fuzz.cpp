// tokenizer.json; and a tokenizer that was read encodes and decodes.
#include "core/text/tokenizer.h"
#include "tests/fuzz/fuzz.h"

QWASM_FUZZ_TARGET(tokenizer) {
  std::unique_ptr<qwasm::Tokenizer> tokenizer;
  if (!qwasm::Tokenizer::from_json(bytes, &tokenizer).ok()) return;
  std::vector<int32_t> ids;
  if (tokenizer->encode("abc  <|im_end|> é 12\n", true, 0, &ids).ok()) tokenizer->decode(ids, false);
}
