#pragma once
#include <string>
#include <vector>

#include "privacy/verify/stated_numbers.hpp"

namespace cudp::verify {

/// Checks a stated selection: that each candidate of the grid spends what one of the parts says,
/// that the released training is one of them, and that epsilon, E[K] and the bound follow. Returns
/// one line for each difference.
std::vector<std::string> check_tuning(const privacy::Certificate::Tuning& tuning,
                                      const StatedNumbers& certificate);

}  // namespace cudp::verify
