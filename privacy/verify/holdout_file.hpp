#pragma once
#include <optional>
#include <string>
#include <vector>

#include "privacy/verify/certificate.hpp"

namespace cudp::verify {

/// Checks release/holdout.json against the certificate: its promise and noise are the
/// certificate's, and there are as many figures, of the kind, that these pay for. text: of the
/// file, empty where there is none. Returns what differs.
std::vector<std::string> check_holdout_file(const std::optional<std::string>& text,
                                            const Certificate& certificate);

}  // namespace cudp::verify
