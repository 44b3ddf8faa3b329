#include "runtime/device/cpu/linear_sum.hpp"

#include <algorithm>
#include <variant>

namespace cudp::cpu {

bool LinearSum::fits(const Network& network) {
  if (network.layers.size() != 1 || network.outputs != 1) return false;
  if (network.spec.loss == Loss::softmax_cross_entropy) return false;
  const auto* const dense = std::get_if<Dense>(&network.layers.front().layer);
  return dense != nullptr && !dense->per_token;
}

LinearSum::LinearSum(const Network& network, const CpuLayout& layout, const CpuKernels& kernels,
                     std::span<const float> class_weights, int threads)
    : network_(network),
      layout_(layout),
      kernels_(kernels),
      class_weights_(class_weights),
      parts_(to_size(threads)),
      fetched_(to_size(threads)) {}

void LinearSum::prepare(const CodedRows& coded, std::span<const float> parameters) {
  const std::int64_t first_number = padded(std::int64_t{coded.features} + 1);
  const std::int64_t bias = first_number + padded(coded.numbers);
  if (first_number != first_number_ || bias != bias_) {
    first_number_ = first_number;
    bias_ = bias;
    const std::size_t size = to_size(bias + kColumnBlock);
    for (Part& p : parts_)
      p = {AlignedVector<std::int32_t>(size), AlignedVector<std::int64_t>(size)};
    all_ = AlignedVector<std::int64_t>(size);
    weights_ = AlignedVector<float>(to_size(first_number));
    number_weights_ = AlignedVector<float>(to_size(padded(coded.numbers)));
  }
  std::copy_n(parameters.data() + network_.parameters[0].offset, coded.features, weights_.data());
  for (int k = 0; k < coded.numbers; ++k)
    number_weights_[to_size(k)] = weights_[to_size(coded.number_feature[k])];
}

void LinearSum::add(const Dataset& data, const CodedRows& coded, const LinearExamples& of,
                    std::int32_t* units) const {
  if (data.is_coded()) {
    kernels_.coded_linear({.of = of,
                           .rows = coded,
                           .weights = weights_.data(),
                           .number_weights = number_weights_.data(),
                           .units = units,
                           .number_units = units + first_number_});
    return;
  }
  kernels_.dense_linear({.of = of,
                         .floats = data.is_bytes() ? nullptr : data.float_values().data(),
                         .bytes = data.is_bytes() ? data.byte_values().data() : nullptr,
                         .scale = data.scale,
                         .shift = data.shift,
                         .features = coded.features,
                         .weights = weights_.data(),
                         .units = units});
}

void LinearSum::add_up(const Dataset& data, std::span<const std::uint32_t> examples,
                       std::span<const float> parameters, const AddClipped& use, ThreadTeam& team,
                       std::int64_t* sum, Diagnostics* diagnostics) {
  const CodedRows coded =
      data.is_coded() ? data.coded_rows() : CodedRows{.features = narrow(data.shape.size())};
  prepare(coded, parameters);
  constexpr std::size_t kTask = kMaxLinearExamples;
  const std::size_t tasks = (examples.size() + kTask - 1) / kTask;
  facts_.assign(diagnostics != nullptr ? tasks : 0, {});
  team.run(tasks, [&](std::size_t i, int thread) {
    Part& part = parts_[to_size(thread)];
    std::int32_t* const units = part.units.data();
    std::span<const std::uint32_t> task =
        examples.subspan(i * kTask, std::min(kTask, examples.size() - i * kTask));
    const Dataset* from = &data;
    CodedRows rows = coded;
    if (data.rows != nullptr) {
      data.rows->read_ahead(examples, i * kTask, kTask);
      FetchedExamples& fetched = fetched_[to_size(thread)];
      from = &fetched.fetch(data, task);
      task = fetched.indices();
      if (data.is_coded()) rows = from->coded_rows();
    }
    add(*from, rows,
        {.examples = task.data(),
         .count = static_cast<int>(task.size()),
         .labels = from->labels.data(),
         .targets = has_target(network_.spec.loss) ? from->targets.data() : nullptr,
         .bias = parameters[network_.parameters[1].offset],
         .loss = network_.spec.loss,
         .huber = network_.spec.huber,
         .class_weights = class_weights_.empty() ? nullptr : class_weights_.data(),
         .clip = use.clip,
         .inverse_grid = use.inverse_grid,
         .bias_unit = units + bias_,
         .facts = diagnostics != nullptr ? &facts_[i] : nullptr},
        units);
    kernels_.flush_units(units, part.totals.data(), bias_ + kColumnBlock);
  });
  collect(coded, sum);
  for (const LinearFacts& f : facts_)
    *diagnostics += {.loss_units = f.loss,
                     .norm_units = f.norm,
                     .clipped = static_cast<std::uint64_t>(f.clipped),
                     .examples = 0,
                     .non_finite = static_cast<std::uint64_t>(f.non_finite)};
  if (diagnostics != nullptr) diagnostics->examples += examples.size();
}

void LinearSum::collect(const CodedRows& coded, std::int64_t* sum) {
  std::vector<std::int64_t*> totals;
  std::vector<std::int32_t*> units;
  for (Part& p : parts_) {
    totals.push_back(p.totals.data());
    units.push_back(p.units.data());
  }
  kernels_.sum_units({.totals = totals.data(),
                      .units = units.data(),
                      .count = static_cast<int>(parts_.size()),
                      .out = all_.data(),
                      .n = bias_ + kColumnBlock});
  for (int k = 0; k < coded.numbers; ++k)
    all_[to_size(coded.number_feature[k])] += all_[to_size(first_number_ + k)];
  const auto place = [&](std::size_t j) -> std::int64_t& {
    return sum[layout_.storage.packed_offset[j]];
  };
  const std::size_t weight = network_.parameters[0].offset;
  for (int j = 0; j < coded.features; ++j) place(weight + to_size(j)) = all_[to_size(j)];
  place(network_.parameters[1].offset) = all_[to_size(bias_)];
}

}  // namespace cudp::cpu
