#pragma once
#include <optional>
#include <string>
#include <vector>

#include "privacy/verify/stated_numbers.hpp"

namespace cudp::verify {

/// Checks release/holdout.json against the certificate: epsilon, delta and noise are the
/// certificate's, and its figures are of the kind and number that the certificate's releases pay
/// for. text: content of the file; nullopt if there is none. Returns the differences.
std::vector<std::string> check_holdout_file(const std::optional<std::string>& text,
                                            const StatedNumbers& certificate);

}  // namespace cudp::verify
