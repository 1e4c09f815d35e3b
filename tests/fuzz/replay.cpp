// Replays the corpus of every fuzz target: each file as it is, every beginning of it, and with single bytes changed.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

#include "tests/fuzz/fuzz.h"

namespace qwasm::fuzz {
namespace {

constexpr size_t kMostBeginnings = 600, kMostChanges = 600;  // of a file: longer ones by strides
constexpr unsigned char kBytes[] = {0x00, 0x01, 0x7f, 0x80, 0xff, '"', '{'};

std::vector<Target>& targets() {
  static std::vector<Target> all;
  return all;
}

// In an allocation of exactly its size, so that AddressSanitizer sees a read beyond it.
void run(const Target& target, const std::vector<char>& input, size_t length) {
  const std::unique_ptr<char[]> exact(new char[length]);
  if (length > 0) std::memcpy(exact.get(), input.data(), length);
  target.run({exact.get(), length});
}

int replay(const Target& target, std::vector<char> input) {
  run(target, input, input.size());
  int runs = 1;
  for (size_t length = 0; length < input.size(); length += 1 + input.size() / kMostBeginnings, ++runs) run(target, input, length);
  size_t turn = 0;
  for (size_t at = 0; at < input.size(); at += 1 + input.size() / kMostChanges, ++runs) {
    const char before = input[at];
    input[at] = static_cast<char>(kBytes[turn++ % std::size(kBytes)]);
    run(target, input, input.size());
    input[at] = before;
  }
  return runs;
}

}  // namespace

int add_target(Target target) {
  targets().push_back(target);
  return static_cast<int>(targets().size());
}

}  // namespace qwasm::fuzz

int main() {
  namespace fs = std::filesystem;
  for (const auto& target : qwasm::fuzz::targets()) {
    const fs::path folder = fs::path(QWASM_ROOT "/tests/fuzz/corpus") / target.name;
    std::vector<fs::path> files;
    if (fs::is_directory(folder)) std::copy(fs::directory_iterator(folder), fs::directory_iterator(), std::back_inserter(files));
    if (files.empty()) {
      std::fprintf(stderr, "%s holds no files\n", folder.c_str());
      return 1;
    }
    std::sort(files.begin(), files.end());
    int runs = 0;
    for (const fs::path& path : files) {
      std::ifstream file(path, std::ios::binary);
      runs += qwasm::fuzz::replay(target, std::vector<char>(std::istreambuf_iterator<char>(file), {}));
    }
    std::printf("%s: %zu files, %d inputs\n", target.name, files.size(), runs);
  }
}
