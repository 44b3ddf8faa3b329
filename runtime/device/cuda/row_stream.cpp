#include "runtime/device/cuda/row_stream.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "runtime/base/error.hpp"
#include "runtime/data/examples.hpp"
#include "runtime/device/cuda/training_set.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

RowStream::RowStream(Gpu& gpu, const Dataset& train, const EngineSettings& settings,
                     const DeviceData& shared, bool sorts_words)
    : gpu_(gpu),
      train_(train),
      shared_(shared),
      widths_(widths_of_row(train, sorts_words)),
      team_(settings.threads),
      draws_(train, settings.generator, settings.key, team_) {}

RowStream::Columns RowStream::widths_of_row(const Dataset& train, bool sorts_words) {
  return {.features = feature_bytes(train),
          .targets = train.targets.empty() ? 0 : sizeof(float),
          .lengths = train.is_text() ? sizeof(std::uint16_t) : 0,
          .order = sorts_words ? feature_bytes(train) : 0};
}

std::size_t RowStream::bytes_of_row(const Dataset& train, bool sorts_words) {
  const Columns w = widths_of_row(train, sorts_words);
  return w.features + w.targets + w.lengths + w.order + w.labels;
}

void RowStream::reserve(std::size_t list_size) {
  if (list_size == list_size_ && buffers_[0]) return;
  for (auto& b : buffers_) {
    if (b) gpu_.wait(b->copied);
    b.reset();
  }
  list_size_ = list_size;
  const std::size_t of_a_step =
      list_size * (bytes_of_row(train_, widths_.order > 0) + sizeof(std::uint32_t));
  const std::size_t budget = std::min(kBufferBytes, gpu_.memory() / 16);
  steps_ = std::clamp<std::size_t>(budget / std::max<std::size_t>(1, of_a_step), 1, kMaxSteps);
  std::size_t end = list_at() + steps_ * list_size * sizeof(std::uint32_t);
  const auto place = [&](std::size_t width) {
    constexpr std::size_t kAlignment = 256;
    const std::size_t at = (end + kAlignment - 1) / kAlignment * kAlignment;
    end = at + width * steps_ * list_size;
    return at;
  };
  at_.features = place(widths_.features);
  at_.targets = place(widths_.targets);
  at_.lengths = place(widths_.lengths);
  at_.order = place(widths_.order);
  at_.labels = place(widths_.labels);
  for (auto& b : buffers_) b.emplace(gpu_, end);
  next_ = 0;
}

StepRows RowStream::rows(std::size_t buffer) const {
  const std::uint8_t* const base = buffers_.at(buffer)->device.get();
  StepRows rows{
      .data = shared_,
      .batches = BatchesAhead{.range = reinterpret_cast<const StepRange*>(base),
                              .counts = reinterpret_cast<const std::uint32_t*>(base + counts_at()),
                              .examples = reinterpret_cast<const std::uint32_t*>(base + list_at()),
                              .list_size = static_cast<std::uint32_t>(list_size_)}};
  DeviceData& d = rows.data;
  const std::uint8_t* const features = base + at_.features;
  if (train_.is_coded())
    d.coded.rows = features;
  else if (train_.is_text())
    d.texts.tokens = reinterpret_cast<const std::uint16_t*>(features);
  else if (train_.is_bytes())
    d.bytes = features;
  else
    d.floats = reinterpret_cast<const float*>(features);
  d.labels = base + at_.labels;
  if (widths_.targets > 0) d.targets = reinterpret_cast<const float*>(base + at_.targets);
  if (widths_.lengths > 0)
    d.texts.lengths = reinterpret_cast<const std::uint16_t*>(base + at_.lengths);
  if (widths_.order > 0) d.texts.order = reinterpret_cast<const std::uint16_t*>(base + at_.order);
  return rows;
}

RowStream::Part RowStream::stage(const Draw& draw, std::uint64_t first, std::size_t steps) {
  const std::size_t number = next_;
  next_ = (next_ + 1) % kBuffers;
  Buffers& buffer = *buffers_[number];
  gpu_.wait(buffer.copied);  // the host's memory is free again
  steps = std::min(steps, steps_);
  std::uint8_t* const host = buffer.host.get();
  auto* const counts = reinterpret_cast<std::uint32_t*>(host + counts_at());
  auto* const list = reinterpret_cast<std::uint32_t*>(host + list_at());
  const StepRange range{first, first + steps};
  std::memcpy(host, &range, sizeof range);
  examples_.clear();
  if (gpu_.fills_scratch())
    gpu_.fill_scratch(host + at_.features, buffer.host.size() - at_.features);
  for (std::size_t k = 0; k < steps; ++k) {
    const std::span<const std::uint32_t> batch = draws_.draw(first + k, draw);
    // The list has space for list_size_ examples. If the batch is larger, the list has only the
    // first of them, but counts[k] is the size of the whole batch. The device compares it with the
    // list's capacity and stops before this step.
    const std::size_t listed = std::min(batch.size(), list_size_);
    counts[k] = static_cast<std::uint32_t>(batch.size());
    std::iota(list + k * list_size_, list + k * list_size_ + listed,
              static_cast<std::uint32_t>(examples_.size()));
    examples_.insert(examples_.end(), batch.begin(),
                     batch.begin() + static_cast<std::ptrdiff_t>(listed));
  }
  copy_rows(host);
  send(buffer, steps);
  return {number, steps, examples_};
}

void RowStream::launched(const Part& part) { gpu_.mark(buffers_.at(part.buffer)->read); }

/// Copies the rows of examples_, the examples of the current part's steps, from the training set to
/// a buffer in host memory, `to`.
void RowStream::copy_rows(std::uint8_t* to) {
  constexpr std::size_t kTask = 256;
  const std::span<const std::uint32_t> examples = examples_;
  const auto places = static_cast<std::size_t>(train_.shape.size());
  team_.run((examples.size() + kTask - 1) / kTask, [&](std::size_t task, int) {
    const std::size_t at = task * kTask;
    const auto which = examples.subspan(at, std::min(kTask, examples.size() - at));
    if (train_.rows != nullptr) train_.rows->read_ahead(examples, at, kTask);
    std::uint8_t* const features = to + at_.features + at * widths_.features;
    copy_features(train_, which, features);
    const auto copy = [&](const auto& from, std::size_t column) {
      auto* into = to + column + at * sizeof from[0];
      for (const std::uint32_t e : which) {
        std::memcpy(into, &from[e], sizeof from[0]);
        into += sizeof from[0];
      }
    };
    copy(train_.labels, at_.labels);
    if (widths_.targets > 0) copy(train_.targets, at_.targets);
    if (widths_.lengths > 0) copy(train_.lengths, at_.lengths);
    if (widths_.order == 0) return;
    const auto* const words = reinterpret_cast<const std::uint16_t*>(features);
    auto* const order = reinterpret_cast<std::uint16_t*>(to + at_.order + at * widths_.order);
    for (std::size_t i = 0; i < which.size(); ++i)
      sort_words(words + i * places, train_.lengths[which[i]], order + i * places);
  });
}

/// Starts the copy of a buffer, with the batches and rows of `steps` steps, from host memory to the
/// device. It runs in the CUDA stream for copies, while the device computes other steps.
void RowStream::send(Buffers& buffer, std::size_t steps) {
  gpu_.hold_copies(buffer.read);
  const auto copy = [&](std::size_t at, std::size_t bytes) {
    if (bytes > 0) gpu_.copy_beside(buffer.device.get() + at, buffer.host.get() + at, bytes);
  };
  // In tests, fill_scratch() has filled the unused rows of the buffer with a value. They are
  // copied, too, to find steps that read them.
  const std::size_t rows = gpu_.fills_scratch() ? steps_ * list_size_ : examples_.size();
  copy(0, list_at() + steps * list_size_ * sizeof(std::uint32_t));
  copy(at_.features, rows * widths_.features);
  copy(at_.targets, rows * widths_.targets);
  copy(at_.lengths, rows * widths_.lengths);
  copy(at_.order, rows * widths_.order);
  copy(at_.labels, rows * widths_.labels);
  gpu_.mark_copies(buffer.copied);
  gpu_.await_copies(buffer.copied);
}

}  // namespace cudp::cuda::inline CUDP_SIMT
