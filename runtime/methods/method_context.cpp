#include "runtime/methods/method_context.hpp"

#include <stdexcept>

#include "runtime/base/error.hpp"
#include "runtime/config/keys_in_use.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/methods/releases_before.hpp"

namespace cudp {

std::optional<privacy::CountSplit> count_split(const TrainConfig& config, const DataSplit& data) {
  if (data.size_is_public || method_entry(config.method).counts_in_its_proof) return std::nullopt;
  try {
    if (const auto& count = config.of<KeysInUse>().count)
      return privacy::split_with_count_of(count->budget, *config.epsilon, *config.delta);
    return privacy::split_for_count(*config.epsilon, *config.delta, data.unit_rows);
  } catch (const std::logic_error& none) {
    throw BudgetError(std::string("the number of training examples is private, and ") +
                      none.what());
  }
}

MethodContext method_context(const TrainConfig& config, const Network& network,
                             const TrainingSize& size, const Arithmetic& arithmetic,
                             const privacy::Ledger& ledger) {
  const std::optional<privacy::CountSplit>& split = ledger.split();
  MethodContext context{.config = config,
                        .network = network,
                        .size = size,
                        .arithmetic = arithmetic,
                        .before = releases_before(config, size, split),
                        .key_was_lost = ledger.has_fresh_key(),
                        .split = split};
  if (split) {
    context.config.epsilon = split->training_epsilon;
    context.config.delta = split->training_delta;
  }
  return context;
}

}  // namespace cudp
