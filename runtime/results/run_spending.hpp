#pragma once
#include <string>

#include <nlohmann/json.hpp>

#include "privacy/several_runs.hpp"
#include "privacy/verify/stated_numbers.hpp"

namespace cudp {

/// Returns the privacy cost of a run in a form that can be added up over several runs; if the run
/// is not finished, its planned cost. certificate, stated: the run's certificate (privacy.json), as
/// JSON and as numbers. source: name of the certificate in messages. Throws InputError if the
/// certificate states no epsilon, or does not list the noisy values that the run released.
privacy::RunSpending spending_of(const nlohmann::json& certificate,
                                 const verify::StatedNumbers& stated, const std::string& source);

/// Returns the privacy cost of a training without the cost of releasing a noisy number of its
/// examples, if it releases one. stated: the numbers in the training's certificate, which must
/// state how the budget was divided between that release and the training.
privacy::RunSpending spending_given_count(const verify::StatedNumbers& stated);

}  // namespace cudp
