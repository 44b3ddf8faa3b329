#pragma once
#include <cstdint>

#include <nlohmann/json.hpp>

#include "models/model.hpp"
#include "privacy/filter.hpp"
#include "runtime/methods/dp_agd.hpp"
#include "runtime/run/certificate.hpp"

namespace cudp {

/// release/privacy.json of a run whose releases a filter let through: its epsilon is the filter's
/// budget, whatever was spent of it, since when to stop was decided by looking.
nlohmann::ordered_json make_guarded_certificate(const CertificateFacts& facts,
                                                const privacy::Filter& filter,
                                                const DpAgdSettings& settings,
                                                const Network& network, std::uint64_t iterations);

}  // namespace cudp
