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

/// Of a TrainConfig: the keys of settings that no flag, file or preset states, and that the rule
/// for tables may choose once the number of rows is known. It is no option: a config that is
/// written has what was chosen.
struct LeftOpen {
  std::vector<std::string> keys;
};

/// The rule's batch is the number of rows over this, rounded down, and at least 1.
inline constexpr double kTableBatches = 25.0;

/// The keys of the settings that the rule for tables chooses.
std::span<const std::string_view> table_setting_keys();

/// Whether the rule holds for this training: a model of one dense layer, on the rows of a table, by
/// a method that clips gradients as dpsgd does and has a budget.
bool has_table_defaults(const TrainConfig& config, const Dataset& format, const Network& network);

/// Whether the rule chooses the batch.
bool table_chooses_batch(const TrainConfig& config, const Dataset& format, const Network& network);

/// Sets what LeftOpen names, where the rule holds; the keys stay there. Batch,
/// length, learning rate, averaging and clipping norm follow from the number of examples as far as
/// it is public or was released, the budget, the unit of privacy, and the network's shape: never
/// from anything else about the rows. The rule, and the tables that it was chosen on, are in
/// bench/results/tables.md.
void choose_for_table(TrainConfig& config, const TrainingSize& size, const Dataset& format,
                      const Network& network);

/// One line for people: what the rule has chosen, and from what; of a method that needs settings of
/// its own, what the rule would have chosen for dpsgd, and what to type. Empty where it chose
/// nothing, and of such a method where a learning rate is typed.
std::string table_defaults_line(const TrainConfig& config, const TrainingSize& size,
                                const Dataset& format, const Network& network);

}  // namespace cudp
