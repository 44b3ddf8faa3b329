#pragma once
#include <string>

#include <nlohmann/json.hpp>

#include "privacy/several_runs.hpp"
#include "privacy/verify/stated_numbers.hpp"

namespace cudp {

/// Returns the privacy that a run has spent, or will have spent when it is finished, to add up over
/// several runs. certificate, stated: the run's certificate, as JSON and as numbers. source: its
/// name in messages. Throws InputError if it states no epsilon or no releases.
privacy::RunSpending spending_of(const nlohmann::json& certificate,
                                 const verify::StatedNumbers& stated, const std::string& source);

/// Returns the privacy that a training spends after its noisy number of examples, given that
/// number: by its certificate, which must divide the budget.
privacy::RunSpending spending_given_count(const verify::StatedNumbers& stated);

}  // namespace cudp
