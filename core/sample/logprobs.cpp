// The logarithm of the softmax, and its largest values.
#include "core/sample/logprobs.h"

#include <algorithm>
#include <utility>

#include "core/base/math.h"

namespace qwasm {

std::vector<Logprob> log_probabilities(std::span<const float> logits, int32_t chosen, size_t top) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sums[4] = {};  // so that the loop vectorizes
  const size_t fours = logits.size() / 4 * 4;
  for (size_t i = 0; i < fours; i += 4) {
    for (size_t j = 0; j < 4; ++j) sums[j] += exp_not_above_1(logits[i + j] - largest);
  }
  for (size_t i = fours; i < logits.size(); ++i) sums[0] += exp_not_above_1(logits[i] - largest);
  const double normalizer = log_f64((sums[0] + sums[2]) + (sums[1] + sums[3]));

  std::vector<Logprob> found = {{chosen, logits[static_cast<size_t>(chosen)]}};  // with logits first
  for (int32_t id = 0; top > 0 && id < static_cast<int32_t>(logits.size()); ++id) {
    const float logit = logits[static_cast<size_t>(id)];
    if (found.size() > top) {
      if (logit <= found.back().logprob) continue;
      found.pop_back();
    }
    found.push_back({id, logit});
    for (size_t i = found.size() - 1; i > 1 && found[i - 1].logprob < logit; --i) std::swap(found[i - 1], found[i]);
  }
  for (Logprob& token : found) token.logprob = static_cast<float>(token.logprob - largest - normalizer);
  return found;
}

}  // namespace qwasm
