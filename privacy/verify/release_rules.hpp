#pragma once
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "privacy/verify/certificate.hpp"
#include "privacy/verify/settings.hpp"

namespace cudp::verify {

/// Checks the list of releases against the rule of its method: which mechanisms, of what noise, how
/// often and in which order follow from the settings and the number of steps. Then the numbers of
/// the certificate that follow from settings by a formula: noise of the row count and of features,
/// regulariser, shares of a budget. Returns what differs: place, expected, found.
///
/// Of DPIS and DP-AGD, whose releases depend on what was released before, it checks that each is
/// one that the method can make.
std::vector<std::string> check_release_rules(const nlohmann::json& json, const Certificate& c,
                                             const Settings& settings);

}  // namespace cudp::verify
