#include "runtime/training/loaded_data.hpp"

#include "runtime/base/busy.hpp"
#include "runtime/config/keys_in_use.hpp"
#include "runtime/data/bytes.hpp"
#include "runtime/data/given_arrays.hpp"
#include "runtime/device/cuda/devices.hpp"
#include "runtime/features/features.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/settings/options.hpp"
#include "runtime/training/prepare.hpp"

namespace cudp {
namespace {

/// Capacity of the cache of accountant results that several trainings share.
constexpr std::size_t kResults = 4096;

/// Returns whether a training with this config certainly runs on the CPU.
bool is_on_cpu(const TrainConfig& config) {
  return !built_with_cuda() || config.device == Device::cpu || method_entry(config.method).cpu_only;
}

}  // namespace

std::shared_ptr<privacy::AccountantMemo> memo_for_trainings() {
  return std::make_shared<privacy::AccountantMemo>(kResults);
}

std::string loading_key(const TrainConfig& config) {
  if ((config.holdout && !config.of<KeysInUse>().split_key) ||
      config.of<ArraysInUse>().arrays != nullptr || config.rows_in == RowsIn::file)
    return "";
  std::string key = is_on_cpu(config) ? "cpu" : "device";
  key += method_entry(config.method).gives_privacy ? "" : ", no privacy";
  for (const Option& option : train_options()) {
    if (option.group != "Data" && option.group != "Text") continue;
    // The budget of the figures of held-out rows does not affect which rows are held out.
    if (option.key == "holdout-epsilon" || option.key == "holdout-delta") continue;
    const auto value = option.get(config);
    if (value) key += "\n" + option.key + " = " + value_text(*value);
  }
  return key;
}

std::shared_ptr<LoadedData> load_for_trainings(const TrainConfig& config, Reporter& reporter) {
  auto loaded = std::make_shared<LoadedData>();
  loaded->memo = memo_for_trainings();
  {
    Busy reading("reading " + shown(config.dataset), reporter.shown_work());
    loaded->data = read_data(config, config.of<KeysInUse>().split_key, alone(), {}, &reading);
  }
  if (!is_on_cpu(config)) return loaded;
  // Texts cannot have features; prepare() reports that.
  if (loaded->data.train.is_text() && config.features != Features::none) return loaded;
  const Backend backend = choose_backend(Device::cpu);
  make_features(loaded->data.train, feature_settings(config), backend, reporter);
  if (has_test_rows(config, loaded->data))
    make_features(loaded->data.test, feature_settings(config), backend, reporter);
  loaded->has_features = true;
  return loaded;
}

}  // namespace cudp
