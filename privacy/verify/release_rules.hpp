#pragma once
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "privacy/verify/settings.hpp"
#include "privacy/verify/stated_numbers.hpp"

namespace cudp::verify {

/// Checks the list of releases against the rule of its method: mechanisms, noise, number and order
/// follow from the settings and the number of steps. Checks also the numbers of the certificate
/// that follow from settings by a formula: noise of the row count and of features, regulariser,
/// shares of a budget. Returns the differences: field, expected, found.
///
/// The releases of DPIS and DP-AGD depend on earlier releases. Each is checked to be one that the
/// method can make.
std::vector<std::string> check_release_rules(const nlohmann::json& json, const StatedNumbers& c,
                                             const Settings& settings);

}  // namespace cudp::verify
