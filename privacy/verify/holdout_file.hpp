#pragma once
#include <optional>
#include <string>
#include <vector>

#include "privacy/verify/stated_numbers.hpp"

namespace cudp::verify {

/// Compares release/holdout.json, the noisy test metrics of held-out rows, with the certificate: it
/// must have the certificate's epsilon, delta and noise, and as many noisy numbers of each kind as
/// the certificate's releases pay for. text: content of the file; nullopt if there is none. Returns
/// one line for each difference.
std::vector<std::string> check_holdout_file(const std::optional<std::string>& text,
                                            const StatedNumbers& certificate);

}  // namespace cudp::verify
