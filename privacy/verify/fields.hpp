#pragma once
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "privacy/verify/certificate.hpp"
#include "privacy/verify/settings.hpp"

namespace cudp::verify {

/// Checks every field of a certificate by itself: that certificates of its method have it, that
/// none of theirs is missing, its type, the range of a number, and the words of a text that is part
/// of the promise. Of format 1, which grew, a field may be missing. Returns what differs: path,
/// expected, found.
std::vector<std::string> check_fields(const nlohmann::json& json, const Certificate& certificate,
                                      const Settings& settings);

}  // namespace cudp::verify
