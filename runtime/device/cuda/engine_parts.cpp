#include "runtime/device/cuda/engine_parts.hpp"

#include <array>
#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>
#include <variant>

#include "runtime/base/error.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

namespace {

LayoutChoices choices_for(const Gpu& gpu, const Network& network, const EngineSettings& settings,
                          std::int64_t large_dense, bool may_be_fused) {
  const bool transforms = DeviceModelState::transforms(settings.recipe);
  const bool is_fused =
      settings.evaluate_with == EvaluateWith::ours &&
      !fused_kernels_for(network, gpu.limits(), settings.precision, transforms).empty();
  const auto by_layers = [&] {
    return is_fused ? Precision::fp32
                    : device_precision(network, gpu.limits(), settings.precision, transforms);
  };
  return {.precision = may_be_fused ? by_layers() : settings.precision,
          .large_dense = large_dense,
          .limits = gpu.limits(),
          .transforms = transforms,
          .evaluates_by_library = settings.evaluate_with == EvaluateWith::cudnn};
}

}  // namespace

EngineParts::EngineParts(Gpu device, const Network& of, const EngineSettings& given,
                         std::int64_t large_dense, bool may_be_fused)
    : gpu(std::move(device)),
      network(of),
      settings(given),
      passes(gpu, network, settings.micro_batch,
             choices_for(gpu, network, settings, large_dense, may_be_fused), settings.say,
             !settings.class_weights.empty()),
      state(gpu, network, settings.recipe),
      position(gpu, network.parameter_count),
      end(gpu, state, position.cursor(), position.list()),
      canaries(network, settings.audit.get()),
      tally(gpu, 1) {
  check_class_weights(network, settings);
  tally.clear();
  const DeviceLimits limits = gpu.limits();
  const auto kernels = fused_kernels_for(network, limits, settings.precision);
  auto transformed = DeviceModelState::transforms(settings.recipe)
                         ? fused_kernels_for(network, limits, settings.precision, true)
                         : std::vector<FusedKernel>{};
  if (kernels.empty() || !may_be_fused || settings.evaluate_with != EvaluateWith::ours) return;
  fused.emplace(gpu, network, kernels, std::move(transformed), settings.micro_batch,
                settings.diagnostics);
  state.write_packed(fused->packed());
}

void EngineParts::load(const Dataset& data) {
  ensure(!has_target(network.spec.loss) || data.targets.size() == data.size(),
         "every example must have a target");
  if (!fits(network, data) || data.classes != network.classes)
    throw InputError("the training set's shape or classes do not fit the model");
  if (data.whole_size() >= std::size_t{1} << 31)
    throw InputError("expected fewer than 2^31 training examples");
  streamed.reset();
  train = {};
  const bool streams = must_stream(data);
  train = on_device(data, !streams);
  if (streams)
    streamed.emplace(gpu, data, settings, train.data(), passes.layout().storage.sorts_words);
  canaries.load(train.size());
  numbering.emplace(data);
  const std::vector<std::uint32_t> index_of_numbers = numbering->index();
  index = {gpu, index_of_numbers.size()};
  index.upload(index_of_numbers);
  sample = {gpu, numbering->count()};
  const bool allocates = std::holds_alternative<Allocation>(settings.recipe.draw);
  allocated = {gpu, allocates ? numbering->count() : 0};
  drawn = {gpu, train.size()};
  norms = {gpu, keeps_norms() ? train.size() : 0};
  norms.clear();
}

DeviceTrainingSet EngineParts::on_device(const Dataset& data, bool holds_rows) {
  return {gpu, data,
          TrainingSetUse{.sorts_words = passes.layout().storage.sorts_words,
                         .class_weights = settings.class_weights,
                         .holds_rows = holds_rows}};
}

namespace {

/// Returns the size of the arrays for drawing batches [bytes for each training example]: `drawn`,
/// `sample` (less than a byte), `index` if rows are held out, and `allocated`. What these hold of
/// held-out rows is not counted.
std::size_t bytes_of_draws(const Dataset& data, const Draw& draw) {
  const bool allocates = std::holds_alternative<Allocation>(draw);
  return sizeof(std::uint32_t) * (1 + (data.numbers.empty() ? 0 : 1) + (allocates ? 1 : 0)) + 1;
}

}  // namespace

bool EngineParts::must_stream(const Dataset& data) const {
  // Importance sampling does not allow streaming: the norms of all rows are computed at once, and a
  // batch depends on norms that the step before has stored.
  if (keeps_norms() || data.size() == 0) return false;
  const double rate = rate_of(settings.recipe.draw);
  // Whether rows are streamed is reported to the user. So the decision uses an estimate of the
  // number of rows from public numbers, if the expected batch size is known.
  const double rows = settings.expected_batch > 0.0 && rate > 0.0
                          ? settings.expected_batch / rate / settings.ranks->size()
                          : static_cast<double>(data.size());
  const std::size_t bytes_of_row =
      RowStream::bytes_of_row(data, passes.layout().storage.sorts_words);
  const double bytes =
      rows * static_cast<double>(bytes_of_row + bytes_of_draws(data, settings.recipe.draw));
  const auto free = static_cast<double>(gpu.free_memory());
  // All later allocations together are assumed to take at most a quarter of the device's memory.
  if (bytes + static_cast<double>(gpu.memory()) / 4 <= free) return false;
  if (settings.say) {
    const auto gigabytes = [](double n) {
      std::array<char, 32> text;
      (void)std::snprintf(text.data(), text.size(), "%.3g GB", n * 1e-9);
      return std::string(text.data());
    };
    settings.say("device: rows are streamed: " + gigabytes(bytes) + " of rows, " + gigabytes(free) +
                 " free");
  }
  return true;
}

void EngineParts::set_train_state(const TrainState& s) {
  ensure(s.norms.empty() || s.norms.size() == norms.size(),
         "the state does not fit the training set");
  state.set(s);
  if (fused) fused->pack(state.parameters());
  norms.upload(s.norms);
}

TrainState EngineParts::train_state() const {
  TrainState s = state.get();
  s.norms = norms.download();
  return s;
}

}  // namespace cudp::cuda::inline CUDP_SIMT
