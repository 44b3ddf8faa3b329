#pragma once
#include <string>

#include <nlohmann/json.hpp>

#include "privacy/several_runs.hpp"
#include "privacy/verify/stated_numbers.hpp"

namespace cudp {

/// Returns the privacy cost of a run, or of its plan if it is not finished, in a form that can be
/// added up over several runs. certificate, stated: the run's certificate, as JSON and as numbers.
/// source: name of the certificate in messages. Throws InputError if it states no epsilon or no
/// releases.
privacy::RunSpending spending_of(const nlohmann::json& certificate,
                                 const verify::StatedNumbers& stated, const std::string& source);

/// Returns the privacy cost of a training without that of its noisy number of examples, i.e. given
/// that number. stated: numbers in its certificate, which must state how the budget was divided
/// between the two.
privacy::RunSpending spending_given_count(const verify::StatedNumbers& stated);

}  // namespace cudp
