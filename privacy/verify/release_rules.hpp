#pragma once
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "privacy/verify/settings.hpp"
#include "privacy/verify/stated_numbers.hpp"

namespace cudp::verify {

/// Checks that the certificate's list of releases is the one that its method makes: their
/// mechanisms, noise, number and order follow from the settings and the number of steps. Also
/// checks numbers that follow from settings by a formula: noise of the number of examples and of
/// statistics for features, regulariser, parts of the budget. Returns the differences: field,
/// expected, found.
///
/// The releases of DPIS and DP-AGD depend on earlier releases; each is only checked to be one that
/// these methods can make.
std::vector<std::string> check_release_rules(const nlohmann::json& json, const StatedNumbers& c,
                                             const Settings& settings);

}  // namespace cudp::verify
