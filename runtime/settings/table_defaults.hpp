#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/model.hpp"
#include "runtime/config/config.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/methods/training_size.hpp"

namespace cudp {

/// Keys of the settings that no flag, file or preset sets, for linear models of a table. When the
/// number of rows is known, choose_for_table() chooses their values. The list is a part of
/// TrainConfig, but users cannot set it; a config that is written to a file has the chosen values
/// instead.
struct LeftOpen {
  std::vector<std::string> keys;
};

/// The default batch size for a linear model of a table is the number of rows divided by this
/// constant, rounded down, but at least 1.
inline constexpr double kTableBatches = 25.0;

/// Returns the keys of all settings for which choose_for_table() can choose a value.
std::span<const std::string_view> table_setting_keys();

/// Returns whether choose_for_table() chooses settings that the user left open: true for a model of
/// one dense layer, on the rows of a table, trained with a privacy budget by a method that clips
/// gradients as DP-SGD does.
bool has_table_defaults(const TrainConfig& config, const Dataset& format, const Network& network);

/// Returns whether choose_for_table() chooses the batch size, because the user left it open and
/// has_table_defaults() is true.
bool table_chooses_batch(const TrainConfig& config, const Dataset& format, const Network& network);

/// Chooses values of the settings whose keys are in config's list LeftOpen, if
/// has_table_defaults(); the list stays as it is. Batch size, number of steps or epochs, learning
/// rate, averaging and clipping norm are functions of the number of examples (public or released),
/// the budget, the unit of privacy, and the network's shape, and of nothing else about the rows.
/// bench/results/tables.md documents the rule. For other models and data the function only lowers
/// the batch size to the number of examples, if the user has not set it.
void choose_for_table(TrainConfig& config, const TrainingSize& size, const Dataset& format,
                      const Network& network);

/// Returns a message for the user with the settings that choose_for_table() chose, and the numbers
/// from which it computed them. For a method that needs other settings than dpsgd: the settings
/// that it would choose for dpsgd, and the flags to type. Returns "" if it chose nothing, or if the
/// user has set the learning rate of such a method.
std::string table_defaults_line(const TrainConfig& config, const TrainingSize& size,
                                const Dataset& format, const Network& network);

}  // namespace cudp
