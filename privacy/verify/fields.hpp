#pragma once
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "privacy/verify/settings.hpp"
#include "privacy/verify/stated_numbers.hpp"

namespace cudp::verify {

/// Checks each field of a certificate by itself: whether certificates of its method have it, its
/// type, the range of a number, and a text that is part of the promise. Also checks that no field
/// is missing. Which fields there must be follows from the method, the status and the settings.
/// Returns the differences: path, expected, found.
std::vector<std::string> check_fields(const nlohmann::json& json, const StatedNumbers& certificate,
                                      const Settings& settings);

}  // namespace cudp::verify
