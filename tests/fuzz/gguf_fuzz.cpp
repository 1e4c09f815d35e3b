// A GGUF file from its beginning to the last row of its weights, through the C ABI.
#include <algorithm>

#include "core/api/qwasm.h"
#include "tests/fuzz/fuzz.h"

QWASM_FUZZ_TARGET(gguf) {
  for (const char* options : {R"({"gguf": "m.gguf", "dtype": "stored"})", R"({"gguf": "m.gguf", "parts": "tokenizer"})", R"({"gguf": "m.gguf", "parts": "headers"})"}) {
    qw_engine* engine = qw_engine_new(options);
    qw_want want;
    while (qw_next_want(engine, &want) == QW_WANT_FILLED) {
      const size_t begin = std::min(bytes.size(), static_cast<size_t>(want.offset));
      const size_t length = std::min(bytes.size() - begin, static_cast<size_t>(want.length));
      if (qw_push(engine, want.id, bytes.data() + begin, static_cast<double>(length), static_cast<double>(bytes.size())) < 0) break;
    }
    qw_info(engine);
    qw_engine_free(engine);
  }
}
