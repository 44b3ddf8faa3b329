#pragma once
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "privacy/verify/settings.hpp"
#include "privacy/verify/stated_numbers.hpp"

namespace cudp::verify {

/// Checks that the certificate's list of releases is the one that its method makes with these
/// settings and this number of steps: mechanisms, noise, number and order. Also checks numbers that
/// a formula computes from the settings: the noise on the number of examples and on statistics for
/// features, the regulariser, and the parts of the budget. Returns one line for each difference:
/// field, expected, found.
///
/// The releases of DPIS and DP-AGD depend on earlier releases. They are only checked to be ones
/// that these methods can make.
std::vector<std::string> check_release_rules(const nlohmann::json& json, const StatedNumbers& c,
                                             const Settings& settings);

}  // namespace cudp::verify
