#pragma once
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "privacy/verify/settings.hpp"
#include "privacy/verify/stated_numbers.hpp"

namespace cudp::verify {

/// Checks that the certificate says "for release" if and only if nothing forbids the release of the
/// model. Also checks that its reasons, warnings, assumptions and test set are those that follow
/// from the settings and the certificate's numbers. Returns one line for each difference.
std::vector<std::string> check_release_reasons(const nlohmann::json& json, const StatedNumbers& c,
                                               const Settings& settings);

}  // namespace cudp::verify
