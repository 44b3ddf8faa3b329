#pragma once
#include <optional>
#include <string>
#include <vector>

#include "privacy/verify/stated_numbers.hpp"

namespace cudp::verify {

/// Checks release/holdout.json, the noisy figures of held-out rows, against the certificate: it has
/// the certificate's epsilon, delta and noise, and as many figures of each kind as the
/// certificate's releases pay for. text: content of the file; nullopt if there is none. Returns one
/// line for each difference.
std::vector<std::string> check_holdout_file(const std::optional<std::string>& text,
                                            const StatedNumbers& certificate);

}  // namespace cudp::verify
