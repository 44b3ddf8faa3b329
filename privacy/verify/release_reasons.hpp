#pragma once
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "privacy/verify/certificate.hpp"
#include "privacy/verify/settings.hpp"

namespace cudp::verify {

/// Checks whether a certificate says that it is for release exactly where nothing speaks against
/// it, and that its reasons, warnings, assumptions and test set are those of the settings and
/// numbers. Returns what differs.
std::vector<std::string> check_release_reasons(const nlohmann::json& json, const Certificate& c,
                                               const Settings& settings);

}  // namespace cudp::verify
