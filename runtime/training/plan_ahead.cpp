#include "runtime/training/plan_ahead.hpp"

#include <exception>
#include <string>
#include <utility>

#include "runtime/data/make_network.hpp"
#include "runtime/data/named_datasets.hpp"
#include "runtime/device/sensitivity.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/methods/releases_before.hpp"
#include "runtime/settings/table_defaults.hpp"

namespace cudp {
namespace {

/// Returns an arbitrary network, used in place of the training's network, which is not known before
/// the data are read. The noise multiplier does not depend on the network.
Network stand_in() {
  constexpr const char* kModel = "logistic";
  return make_network(std::string(builtin_model(kModel)), kModel, "",
                      {.channels = 1, .height = 1, .width = 1}, 2);
}

void plan(const TrainConfig& config, const TrainingSize& size,
          const std::shared_ptr<privacy::AccountantMemo>& memo) {
  MethodContext context{.config = config,
                        .network = stand_in(),
                        .size = size,
                        .arithmetic = kCpuArithmetic,
                        .before = releases_before(config, size, std::nullopt)};
  context.memo = memo;
  (void)method_entry(config.method).make(context);
}

}  // namespace

std::shared_future<void> plan_ahead(const TrainConfig& config,
                                    const std::shared_ptr<privacy::AccountantMemo>& memo,
                                    std::shared_ptr<Timings> timings) {
  const std::uint64_t rows = published_rows(config.dataset);
  const bool chosen_later = !config.of<LeftOpen>().keys.empty();
  if (rows == 0 || chosen_later || !method_entry(config.method).plans_ahead || !config.epsilon ||
      !config.delta)
    return {};
  return std::async(std::launch::async,
                    [config, memo, rows, timings = std::move(timings)] {
                      const ThreadClock clock;
                      try {
                        plan(config, {.value = static_cast<double>(rows)}, memo);
                      } catch (const std::exception&) {  // the method itself will report it
                      }
                      timings->add_beside("accountant", clock.spent());
                    })
      .share();
}

}  // namespace cudp
