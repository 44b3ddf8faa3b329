#pragma once
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "privacy/verify/settings.hpp"
#include "privacy/verify/stated_numbers.hpp"

namespace cudp::verify {

/// Checks that a certificate states that it is for release if and only if no reason forbids it.
/// Checks also that its reasons, warnings, assumptions and test set follow from the settings and
/// numbers. Returns the differences.
std::vector<std::string> check_release_reasons(const nlohmann::json& json, const StatedNumbers& c,
                                               const Settings& settings);

}  // namespace cudp::verify
