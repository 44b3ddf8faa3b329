#pragma once
// What `cudp eval` and `cudp predict` share: a released model, and the data it is asked about.
#include <string>
#include <vector>

#include "runtime/config/config.hpp"
#include "runtime/config/option.hpp"
#include "runtime/results/released_model.hpp"
#include "runtime/results/scorer.hpp"

namespace cudp {

/// Rows of the options that both have: the data, how they are read, and the machine.
std::vector<Option> scoring_options();

/// The request that these options make. labels, ids and groups are the command's own.
ScoringRequest scoring_request(const TrainConfig& config);

/// What is being done to these rows, for a terminal: "scoring 'patients.csv'".
std::string scoring_text(const std::string& dataset);

/// The model of a run folder, its release folder or a file, with the words' vectors that the
/// options name.
ReleasedModel model_for(const TrainConfig& config, const std::string& place);

}  // namespace cudp
