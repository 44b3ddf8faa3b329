#pragma once
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "privacy/verify/settings.hpp"
#include "privacy/verify/stated_numbers.hpp"

namespace cudp::verify {

/// Checks each field of a certificate by itself: whether certificates of this training method have
/// such a field, its JSON type, the range of a number, and the wording of fixed texts. Also checks
/// that no required field is missing, by the method, the status and the settings. Returns one line
/// for each difference: path, expected, found.
std::vector<std::string> check_fields(const nlohmann::json& json, const StatedNumbers& certificate,
                                      const Settings& settings);

}  // namespace cudp::verify
