#pragma once
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "privacy/verify/bounds.hpp"
#include "privacy/verify/certificate.hpp"
#include "privacy/verify/settings.hpp"

namespace cudp::verify {

/// Works out again what a certificate of sums of clipped gradients states beside its epsilon: the
/// lower bound, which accountant has the least bound, its order and interval, and the epsilons of
/// groups; and, of every method, whether it may state groups at all. has_fresh_key: a ledger shows
/// that a key was lost, which releases_repeated need not. Returns what differs.
std::vector<std::string> check_stated_bounds(const nlohmann::json& json, const Certificate& c,
                                             const Settings& settings, bool has_fresh_key,
                                             Bounds& bounds);

}  // namespace cudp::verify
