// Streaming text out of token ids: see stream_decoder.h.
#include "core/text/stream_decoder.h"

#include "core/text/utf8.h"

namespace qwasm {

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool skip_special)
    : tokenizer_(tokenizer), skip_special_(skip_special) {}

std::string_view StreamDecoder::push(int32_t id) {
  tokenizer_.append_bytes(id, skip_special_, &held_);
  piece_.clear();
  held_.erase(0, append_lossy_utf8(held_, &piece_));
  return piece_;
}

std::string_view StreamDecoder::flush() {
  piece_ = held_.empty() ? "" : "\xef\xbf\xbd";
  held_.clear();
  return piece_;
}

void StreamDecoder::reset() {
  held_.clear();
  piece_.clear();
}

}  // namespace qwasm
