#include "runtime/tune/timing.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <exception>
#include <memory>
#include <random>
#include <utility>

#include "runtime/base/random_key.hpp"
#include "runtime/base/reporter.hpp"
#include "runtime/config/keys_in_use.hpp"
#include "runtime/data/examples.hpp"
#include "runtime/training/loaded_data.hpp"
#include "runtime/training/observer.hpp"
#include "runtime/training/prepare.hpp"
#include "runtime/training/training.hpp"

namespace cudp {
namespace {

/// Maximum size of the random examples on which trainings are timed [bytes].
constexpr double kMaxBytes = 1 << 28;

/// Observer that makes a training stop after a given time.
class Stopwatch : public TrainingObserver {
 public:
  explicit Stopwatch(double seconds) : seconds_(seconds) {}
  void planned(const Training&) override { end_ = Clock::now() + seconds_; }
  bool interrupts() override { return Clock::now() >= end_; }

 private:
  using Clock = std::chrono::steady_clock;
  std::chrono::duration<double> seconds_;
  std::chrono::time_point<Clock, std::chrono::duration<double>> end_;
};

/// Returns rows of a table with random codes, evenly spread over the features that are coded.
Dataset random_rows(const RowLayout& layout, std::size_t rows, std::mt19937_64& random) {
  std::vector<std::uint32_t> coded;
  for (int f = 0; f < layout.features; ++f)
    if (!std::ranges::binary_search(layout.number_feature, f))
      coded.push_back(static_cast<std::uint32_t>(f));
  const auto width = static_cast<std::size_t>(layout.codes);
  std::uniform_real_distribution<float> number(-1.0f, 1.0f);
  std::vector<float> numbers(rows * layout.number_feature.size());
  for (float& x : numbers) x = number(random);
  std::vector<std::uint32_t> codes(rows * width, static_cast<std::uint32_t>(layout.features));
  for (std::size_t i = 0; i < codes.size() && coded.size() >= width; ++i) {
    // Code k of a row is drawn from the k-th of `width` ranges of features, so that no feature
    // occurs twice in the row.
    const std::size_t k = i % width;
    const std::size_t first = k * coded.size() / width, end = (k + 1) * coded.size() / width;
    codes[i] = coded[first + random() % (end - first)];
  }
  return coded_dataset(layout, numbers, codes, std::vector<std::uint8_t>(rows), 2);
}

/// Returns the settings for timing a training: no held-out rows, no evaluations, and examples that
/// count as public.
TrainConfig timed_settings(TrainConfig config) {
  config.of<KeysInUse>() = {};
  config.holdout.reset();
  config.holdout_epsilon.reset();
  config.holdout_delta.reset();
  config.test_data.clear();
  config.seed.reset();
  config.eval_every = 0;
  config.rows_in = RowsIn::memory;
  config.unsafe_diagnostics = false;
  return config;
}

}  // namespace

Dataset random_examples(const Dataset& like, std::size_t examples) {
  std::mt19937_64 random(1);
  Dataset data = empty_like(like);
  const std::size_t values = examples * static_cast<std::size_t>(like.shape.size());
  if (like.is_coded()) {
    data.coded = random_rows(*like.layout, examples, random).coded;
  } else if (like.is_text()) {
    data.tokens.resize(values);
    for (auto& token : data.tokens)
      token = static_cast<std::uint16_t>(random() % static_cast<std::uint64_t>(like.words));
    data.lengths.assign(examples, static_cast<std::uint16_t>(like.shape.size()));
  } else if (like.is_bytes()) {
    data.bytes.resize(values);
    for (auto& byte : data.bytes) byte = static_cast<std::uint8_t>(random() >> 56);
  } else {
    std::uniform_real_distribution<float> number(-1.0f, 1.0f);
    data.floats.resize(values);
    for (float& x : data.floats) x = number(random);
  }
  data.labels.resize(examples);
  for (auto& label : data.labels)
    label = static_cast<std::uint8_t>(random() % static_cast<std::uint64_t>(like.classes));
  if (like.has_targets()) data.targets.assign(examples, 0.5f);
  return data;
}

std::optional<TrainingTime> measured_time(TrainConfig config, const DataSplit& like,
                                          double examples, double seconds) {
  const double bytes = static_cast<double>(std::max<std::size_t>(feature_bytes(like.train), 1));
  const double at_most = std::fmax(kMaxBytes / bytes, 2.0 * static_cast<double>(config.batch));
  try {
    auto loaded = std::make_shared<LoadedData>();
    loaded->memo = std::make_shared<privacy::AccountantMemo>();
    loaded->data.name = like.name;
    loaded->data.train = random_examples(
        like.train, static_cast<std::size_t>(std::round(std::fmin(examples, at_most))));
    loaded->data.train.first = loaded->data.train.whole = 0;
    loaded->data.test = empty_like(like.train);
    loaded->data.text = like.text;
    loaded->data.schema = like.schema;
    loaded->data.coding = like.coding;
    loaded->data.size_is_public = true;
    if (const DataInUse& in_use = config.of<DataInUse>(); in_use.loaded != nullptr)
      loaded->has_features = in_use.loaded->has_features;
    config = timed_settings(std::move(config));
    config.of<DataInUse>() = {.loaded = loaded, .takes = true};
    Reporter silent(Reporter::Silent{});
    Stopwatch stopwatch(seconds);
    const auto before = std::chrono::steady_clock::now();
    const auto training =
        Training::begin(prepare(config, silent), SharedKey(make_key()), stopwatch);
    const std::chrono::duration<double> start = std::chrono::steady_clock::now() - before;
    training->advance();
    if (training->step() == 0) return std::nullopt;
    return TrainingTime{.start = start.count(),
                        .step = training->seconds() / static_cast<double>(training->step())};
  } catch (const std::exception&) {
    return std::nullopt;  // a failed estimate does not end the program
  }
}

}  // namespace cudp
