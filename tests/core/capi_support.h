// What the tests of the C ABI share: folders in memory, loading them by want and push, running sequences.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/api/qwasm.h"

namespace qwasm::capi_test {

using Bytes = std::vector<uint8_t>;
using Folder = std::map<std::string, Bytes>;  // file name → contents
using Ids = std::vector<int32_t>;
using Floats = std::vector<float>;
using Json = nlohmann::ordered_json;

inline Bytes bytes_of(const std::string& text) { return Bytes(text.begin(), text.end()); }

inline std::string text_of(const Bytes& bytes) { return std::string(bytes.begin(), bytes.end()); }

// ---- files of the repository

inline Bytes read_file(const std::string& path) {
  std::ifstream file(QWASM_ROOT "/" + path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

inline Json read_json(const std::string& path) { return Json::parse(text_of(read_file(path)), nullptr, false); }

// Where golden.json and golden.safetensors of a model are: "demo" or a name in tests/golden/models.
inline std::string golden_path(const std::string& name) {
  return name == "demo" ? "tests/golden/demo" : "tests/golden/models/" + name;
}

inline Folder golden_folder(const std::string& name) {
  const std::string path = name == "demo" ? "models/demo" : golden_path(name);
  Folder folder;
  for (const auto& entry : std::filesystem::directory_iterator(QWASM_ROOT "/" + path)) {
    const std::string file = entry.path().filename().string();
    if (!file.starts_with("golden.")) folder[file] = read_file(path + "/" + file);
  }
  return folder;
}

// ---- loading

struct FreeEngine {
  void operator()(qw_engine* engine) const { qw_engine_free(engine); }
};
struct FreeSession {
  void operator()(qw_session* session) const { qw_session_free(session); }
};
using Engine = std::unique_ptr<qw_engine, FreeEngine>;
using Session = std::unique_ptr<qw_session, FreeSession>;

// Wants are answered at once; or, when as many as possible are outstanding, from the last to the first or shuffled.
enum class Order { kAtOnce, kReverse, kShuffled };

struct Transport {
  Order order = Order::kAtOnce;
  bool knows_sizes = true;  // false: file_size is -1, as where a server does not tell
};

struct Loaded {
  Engine engine;  // null where loading failed
  int32_t code = QW_OK;
  std::string message;
  double largest_want = 0;  // bytes of the longest range
};

struct Want {
  uint32_t id;
  std::string file;
  double offset, length;
};

// Hands the bytes over in an allocation of exactly their size, so that AddressSanitizer sees a read beyond it.
inline int32_t answer(qw_engine* engine, const Folder& folder, const Want& want, bool knows_sizes) {
  const auto file = folder.find(want.file);
  if (file == folder.end()) return qw_push_missing(engine, want.id);
  const Bytes& contents = file->second;
  const size_t begin = std::min(contents.size(), static_cast<size_t>(want.offset));
  const size_t rest = contents.size() - begin;
  const size_t length = want.length == 0 ? rest : std::min(rest, static_cast<size_t>(want.length));
  const std::unique_ptr<uint8_t[]> exact(new uint8_t[length]);
  if (length > 0) std::memcpy(exact.get(), contents.data() + begin, length);
  const double size = knows_sizes ? static_cast<double>(contents.size()) : -1.0;
  return qw_push(engine, want.id, exact.get(), static_cast<double>(length), size);
}

// What is compared with transformers, or bit for bit with other stored types, asks for exact mode by name.
constexpr const char* kExact = R"({"dtype": "exact"})";

inline Loaded load(const Folder& folder, const std::string& options = kExact, Transport transport = {}) {
  Loaded result;
  const auto fail = [&](int32_t status) {
    EXPECT_LT(status, 0);
    result.code = -status;
    result.message = qw_error_message();
    result.engine.reset();
    return std::move(result);
  };
  result.engine.reset(qw_engine_new(options.c_str()));
  if (!result.engine) return fail(-qw_error_code());
  std::vector<Want> waiting;
  std::mt19937 random(1);
  for (;;) {
    qw_want want;
    const int32_t status = qw_next_want(result.engine.get(), &want);
    if (status < 0) return fail(status);
    if (status == QW_WANT_FILLED) {
      waiting.push_back({want.id, want.file, want.offset, want.length});
      result.largest_want = std::max(result.largest_want, want.length);
      if (transport.order != Order::kAtOnce) continue;
    }
    if (waiting.empty()) {
      EXPECT_EQ(status, QW_WANT_LOADED) << "the core wants nothing and waits for nothing, but is not loaded";
      return result;
    }
    if (transport.order == Order::kShuffled) std::swap(waiting[random() % waiting.size()], waiting.back());
    const Want next = waiting.back();
    waiting.pop_back();
    const int32_t pushed = answer(result.engine.get(), folder, next, transport.knows_sizes);
    if (pushed < 0) return fail(pushed);
  }
}

// Fails the test, and returns null, where loading fails.
inline Engine must_load(const Folder& folder, const std::string& options = kExact, Transport transport = {}) {
  Loaded loaded = load(folder, options, transport);
  EXPECT_EQ(loaded.code, QW_OK) << loaded.message;
  return std::move(loaded.engine);
}

inline Json info_of(qw_engine* engine) {
  const char* text = qw_info(engine);
  EXPECT_NE(text, nullptr) << qw_error_message();
  return Json::parse(text ? text : "null", nullptr, false);
}

// ---- running

// A session whose failures fail the test.
class Sequence {
 public:
  explicit Sequence(const Engine& engine) : session_(qw_session_new(engine.get())) {
    EXPECT_NE(session_, nullptr) << qw_error_message();
    vocab_ = info_of(engine.get())["vocab_size"].get<size_t>();
  }

  qw_session* get() const { return session_.get(); }
  size_t vocab() const { return vocab_; }

  // Returns how many tokens were reused.
  int set_prompt(const Ids& ids) {
    const int32_t reused = qw_set_prompt(get(), ids.data(), ids.size());
    EXPECT_GE(reused, 0) << qw_error_message();
    return reused;
  }

  // Runs what set_prompt left, by slices (the core takes at most 64 tokens at once), and returns the logits of the last
  // `rows` positions (rows × vocab).
  Floats prefill(int remaining, int rows, int slice = 64) {
    Floats kept;
    while (remaining > 0) {
      // A slice ends where the rows to keep begin, so that the kept rows of a slice are its trailing ones.
      const int before = remaining > rows ? remaining - rows : 0;
      const int count = std::min(slice, before > 0 ? before : remaining);
      const int wanted = before > 0 ? 0 : count;
      const int32_t left = qw_prefill(get(), count, wanted);
      EXPECT_EQ(left, remaining - count) << qw_error_message();
      if (left != remaining - count) return kept;
      if (wanted > 0) kept.insert(kept.end(), qw_logits(get()), qw_logits(get()) + wanted * vocab_);
      remaining = left;
    }
    return kept;
  }

  // The logits of the last `rows` positions of `ids`, from whatever the cache holds.
  Floats logits(const Ids& ids, int rows = 1, int slice = 64) {
    const int reused = set_prompt(ids);
    return prefill(static_cast<int>(ids.size()) - reused, rows, slice);
  }

  // The next `count` tokens; the text of each is appended to `text`.
  Ids steps(int count, std::string* text = nullptr) {
    Ids ids;
    for (int i = 0; i < count; i++) {
      const int32_t id = qw_step(get());
      EXPECT_GE(id, 0) << qw_error_message();
      if (id < 0) return ids;
      ids.push_back(id);
      if (!text) continue;
      const int32_t length = qw_piece(get());
      EXPECT_GE(length, 0) << qw_error_message();
      if (length > 0) text->append(qw_piece_text(get()), static_cast<size_t>(length));
    }
    return ids;
  }

 private:
  Session session_;
  size_t vocab_ = 0;
};

// Bit for bit: a NaN equals itself, and -0 differs from 0.
inline bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

}  // namespace qwasm::capi_test
