#pragma once
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "privacy/verify/bounds.hpp"
#include "privacy/verify/settings.hpp"
#include "privacy/verify/stated_numbers.hpp"

namespace cudp::verify {

/// Recomputes the bounds that a certificate states in addition to its epsilon, and compares them:
/// the lower bound, the accountant with the smallest bound, its Renyi order or its spacing of
/// privacy losses, and the epsilons of groups. Also checks, for every method, whether the
/// certificate may state groups at all. has_fresh_key: whether the ledger shows that a key was
/// lost; the certificate need not show that in releases_repeated. bounds: cache of the accountant's
/// results. Returns one line for each difference.
std::vector<std::string> check_stated_bounds(const nlohmann::json& json, const StatedNumbers& c,
                                             const Settings& settings, bool has_fresh_key,
                                             Bounds& bounds);

}  // namespace cudp::verify
