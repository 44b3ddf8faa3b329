#pragma once
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "privacy/verify/settings.hpp"
#include "privacy/verify/stated_numbers.hpp"

namespace cudp::verify {

/// Checks that the certificate says "for release" if and only if nothing forbids it, and that its
/// reasons, warnings, assumptions and test set follow from the settings and numbers. Returns the
/// differences.
std::vector<std::string> check_release_reasons(const nlohmann::json& json, const StatedNumbers& c,
                                               const Settings& settings);

}  // namespace cudp::verify
