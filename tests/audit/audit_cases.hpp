#pragma once
// What is audited: the pair of data sets that is worst for clipping and noise.
#include <cstdint>
#include <utility>

#include "runtime/base/random_key.hpp"
#include "runtime/methods/method.hpp"
#include "runtime/run/experiment.hpp"
#include "tests/support/engine_cases.hpp"

namespace cudp::audit {

inline constexpr int kFeatures = 7;

/// A linear model with the hinge loss: where |w| is small an example's gradient is -y (x, 1),
/// whatever w is. `others` examples with one feature of size `size` each, never the first. The
/// example in question has the first feature alone, so large that its clipped gradient is about -C
/// along that coordinate, where all others' gradients vanish.
struct WorstPair {
  Network network = cases::network_of({"svm", "svm", {kFeatures, 1, 1}, 2});
  Dataset with;
  Dataset without;

  WorstPair(int others, float size) {
    without.shape = {kFeatures, 1, 1};
    without.classes = 2;
    for (int i = 0; i < others; ++i) {
      for (int j = 0; j < kFeatures; ++j)
        without.floats.push_back(j == 1 + i % (kFeatures - 1) ? size : 0.0f);
      without.labels.push_back(1);
    }
    with = without;
    for (int j = 0; j < kFeatures; ++j) with.floats.push_back(j == 0 ? 1000.0f : 0.0f);
    with.labels.push_back(1);
  }
};

/// What `cudp train` would have of a config and the pair's data sets.
struct Audited {
  TrainConfig config;
  Experiment with;
  Experiment without;
  TrainingSize size;
  PrivacyPlan plan;

  Audited(const TrainConfig& c, const WorstPair& pair) : config(c) {
    config.threads = 1;
    with = experiment(pair, pair.with);
    without = experiment(pair, pair.without);
    size.value = static_cast<double>(pair.without.size());
    plan = make_plan(config, pair.network, size, with.backend.arithmetic(pair.network));
  }

  const Experiment& of(bool example) const { return example ? with : without; }
  std::uint64_t steps_per_epoch() const { return size.steps_per_epoch(config.batch); }

  /// plan: the one that a method goes by; the product has one for everything.
  MethodFacts facts(const PrivacyPlan& going_by) const {
    return {.config = config,
            .plan = going_by,
            .size = size.value,
            .steps_per_epoch = steps_per_epoch(),
            .network = with.network,
            .arithmetic = with.backend.arithmetic(with.network)};
  }

 private:
  Experiment experiment(const WorstPair& pair, const Dataset& train) const {
    Experiment e;
    e.config = config;
    e.data.train = train;
    e.data.size_is_public = true;
    e.network = pair.network;
    e.backend = choose_backend(Device::cpu);
    return e;
  }
};

/// Of a run: no two have the same.
inline RandomKey key_of(bool with, std::uint64_t run) {
  return key_from_seed(2 * run + (with ? 1 : 0));
}

}  // namespace cudp::audit
