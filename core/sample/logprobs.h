// Log-probabilities of the model's own distribution: before any bias, penalty, temperature or mask.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace qwasm {

struct Logprob {
  int32_t id;
  float logprob;  // natural logarithm, computed in double
};

// Of the token `chosen`, followed by the `top` likeliest tokens of the whole vocabulary, of equals the lower id first.
std::vector<Logprob> log_probabilities(std::span<const float> logits, int32_t chosen, size_t top);

}  // namespace qwasm
