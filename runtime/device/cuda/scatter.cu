#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/features/scatter.cuh"
#include "runtime/base/error.hpp"
#include "runtime/device/cuda/launch.hpp"
#include "runtime/device/cuda/scatter.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

namespace {

/// Returns the number of planes that are transformed at once (a plane is one colour of one image).
/// Their second-order images, which take most of the memory, need at most half a gibibyte. t: the
/// tables for images of one size.
int scatter_planes(const ScatterTables& t) {
  const std::int64_t bytes = std::int64_t{kScatterAngles} * kScatterAngles * t.rows[1] *
                             t.columns[1] * static_cast<std::int64_t>(sizeof(ComplexFloat));
  return static_cast<int>(std::clamp<std::int64_t>((std::int64_t{1} << 29) / bytes, 1, 4096));
}

}  // namespace

DeviceScatter::DeviceScatter(Gpu& gpu, int height, int width, int capacity)
    : gpu_(gpu),
      bank_(height, width),
      t_(bank_.tables()),
      capacity_(capacity > 0 ? capacity : scatter_planes(t_)),
      row_from_(gpu, count(t_.rows[0])),
      column_from_(gpu, count(t_.columns[0])),
      psi_(gpu, count(2) * kScatterAngles * pixels(0)),
      bytes_(gpu, count(capacity_) * count(height * width)),
      floats_(gpu, count(capacity_) * count(height * width)),
      images_(gpu, count(capacity_) * pixels(0)),
      first_(gpu, count(capacity_) * kScatterAngles * pixels(0)),
      second_(gpu, count(capacity_) * kScatterAngles * kScatterAngles * pixels(1)),
      out_(gpu, count(capacity_) * features()) {
  ScatterLowPass largest{};
  largest.columns = t_.columns[0];
  largest.out_height = t_.out_height;
  if (const std::size_t shared = launch_shape(largest).shared_bytes; shared > kAlwaysShared)
    gpu_.allow_shared(scatter_low_pass_kernel, shared);
  bytes_.clear();
  floats_.clear();
  row_from_.upload({t_.row_from, row_from_.size()});
  column_from_.upload({t_.column_from, column_from_.size()});
  psi_.upload({t_.psi, psi_.size()});
  for (int level = 0; level < 2; ++level) {
    low_rows_[level] = table(t_.low_rows[level], t_.rows[level], t_.out_height);
    low_columns_[level] = table(t_.low_columns[level], t_.columns[level], t_.out_width);
  }
}

std::vector<float> DeviceScatter::operator()(const Dataset& images, const WorkDone& done) {
  ensure(images.shape.height == t_.height && images.shape.width == t_.width,
         "the images do not fit the filters");
  const std::size_t planes = images.size() * count(images.shape.channels);
  const std::size_t plane = count(t_.height * t_.width);
  std::vector<float> out(planes * features());
  for (std::size_t at = 0; at < planes; at += count(capacity_)) {
    const std::size_t n = std::min(count(capacity_), planes - at);
    if (images.is_bytes())
      bytes_.upload(images.byte_values().subspan(at * plane, n * plane));
    else
      floats_.upload(images.float_values().subspan(at * plane, n * plane));
    transform(capacity_,
              images);  // all by one cuFFT plan, so that an image's numbers depend on it alone
    gpu_.download(out.data() + at * features(), out_.get(), n * features() * sizeof(float));
    done(static_cast<double>(at + n) / static_cast<double>(planes));
  }
  return out;
}

Buffer<float> DeviceScatter::table(const float* numbers, int n, int outputs) {
  Buffer<float> b(gpu_, count(low_pass_blocks(outputs) * kLowPassBlock) * count(n));
  b.upload({numbers, b.size()});
  return b;
}

void DeviceScatter::transform(int planes, const Dataset& images) {
  for (Images* i : {&images_, &first_, &second_}) i->fill_scratch();
  out_.fill_scratch();
  launch(gpu_, "scatter load", scatter_load_kernel,
         ScatterLoad{.bytes = images.is_bytes() ? bytes_.get() : nullptr,
                     .floats = images.is_bytes() ? nullptr : floats_.get(),
                     .scale = images.scale,
                     .shift = images.shift,
                     .planes = planes,
                     .height = t_.height,
                     .width = t_.width,
                     .rows = t_.rows[0],
                     .columns = t_.columns[0],
                     .row_from = row_from_.get(),
                     .column_from = column_from_.get(),
                     .out = images_.get()});
  low_pass(images_, planes, 1, 0, 0);
  fourier(images_, planes, 0, false);
  modulus_of_wavelets(images_, planes, 1, first_);
  low_pass(first_, planes, kScatterAngles, 1, 1 + kScatterAngles);
  modulus_of_wavelets(images_, planes, 0, first_);
  low_pass(first_, planes, kScatterAngles, 0, 1);
  fourier(first_, planes * kScatterAngles, 0, false);
  modulus_of_wavelets(first_, planes * kScatterAngles, 1, second_);
  low_pass(second_, planes, kScatterAngles * kScatterAngles, 1, 1 + 2 * kScatterAngles);
}

void DeviceScatter::fourier(const Images& images, int n, int level, bool inverse) {
  gpu_.fourier(t_.rows[level], t_.columns[level], n, images.get(), inverse);
}

void DeviceScatter::modulus_of_wavelets(const Images& spectra, int n, int level, const Images& to) {
  launch(gpu_, "scatter filter", scatter_filter_kernel,
         ScatterFilter{.spectra = spectra.get(),
                       .images = n,
                       .psi = psi_.get() + count(level) * kScatterAngles * pixels(0),
                       .level = level,
                       .rows = t_.rows[level],
                       .columns = t_.columns[level],
                       .out = to.get()});
  fourier(to, n * kScatterAngles, level, true);
  launch(gpu_, "scatter modulus", scatter_modulus_kernel,
         ScatterModulus{
             .z = to.get(),
             .count = static_cast<std::int64_t>(count(n) * kScatterAngles * pixels(level))});
}

void DeviceScatter::low_pass(const Images& images, int planes, int channels, int level,
                             int first_channel) {
  launch(gpu_, "scatter low pass", scatter_low_pass_kernel,
         ScatterLowPass{.images = images.get(),
                        .planes = planes,
                        .channels = channels,
                        .rows = t_.rows[level],
                        .columns = t_.columns[level],
                        .out_height = t_.out_height,
                        .out_width = t_.out_width,
                        .row_table = low_rows_[level].get(),
                        .column_table = low_columns_[level].get(),
                        .first_channel = first_channel,
                        .out = out_.get()});
}

}  // namespace cudp::cuda::inline CUDP_SIMT
