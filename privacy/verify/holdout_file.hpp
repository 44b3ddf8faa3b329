#pragma once
#include <optional>
#include <string>
#include <vector>

#include "privacy/verify/stated_numbers.hpp"

namespace cudp::verify {

/// Checks release/holdout.json against the certificate: its promise and noise are the
/// certificate's, and its figures are of the kind and number that the certificate's releases pay
/// for. `text`: the file's text; empty if there is no file. Returns the differences.
std::vector<std::string> check_holdout_file(const std::optional<std::string>& text,
                                            const StatedNumbers& certificate);

}  // namespace cudp::verify
