#pragma once
#include <algorithm>
#include <utility>

#include "kernels/layers/planes.cuh"
#include "kernels/products/convolution_batch.hpp"
#include "runtime/device/cuda/launch.hpp"
#include "runtime/device/cuda/layers/product_layer.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Minimum number of channels for which a 3x3 convolution in TF32 uses the kernel that reads
/// patches of the image (kernels/products/patch_product.hpp). With fewer channels, most of a thread
/// block's work would be padding. The value was not chosen by measurement.
inline constexpr int kMinPatchChannels = 16;

/// 2D convolution, computed as a matrix product by kernels that read the input through index tables
/// or as patches of the image. If LayoutChoices::evaluates_by_library is set, cuDNN computes the
/// forward pass.
class CudaConv2d final : public ProductLayer {
 public:
  CudaConv2d(const Conv2d& layer) : conv_(layer) {}

  bool reads_rounded(const NetworkLayer& l, const LayoutChoices& choices) const override {
    return choices.precision == Precision::tf32 &&
           gains_from_tensor_cores(l.in.channels * conv_.kernel * conv_.kernel, conv_.out_channels);
  }
  int input_border() const override { return conv_.pad; }
  int gradient_border(const NetworkLayer& l) const override {
    return std::max(gradient_border(l.in.height, l.out.height),
                    gradient_border(l.in.width, l.out.width));
  }

  void prepare(Gpu& gpu) const override {
    if (by_library_) gpu.prepare_dnn();
  }

  void forward(MicroBatch& w) const override {
    if (by_library_)
      convolve_by_library(w);
    else
      multiply_forward(w);
  }
  void gradient(MicroBatch& w) const override {
    w.products.gradient_norm(gradient_, {.gradient = weight_gradient(w),
                                         .parts = w.parts(first_part_),
                                         .transform = w.transform(offset())});
  }
  void backward(MicroBatch& w) const override { multiply_back(w); }

 private:
  /// Returns the layout `p` without its border of zeros. The arrays that cuDNN reads and writes
  /// have no border.
  static Planes without_border(Planes p) {
    p.border = 0;
    return p;
  }

  void convolve_by_library(MicroBatch& w) const {
    const Planes x = without_border(in().value);
    const Planes y = without_border(out().value);
    const float* from = w.value(in());
    float* const packed = w.library_scratch();
    float* const made = packed + w.per_example(x.size());
    if (in().value.border != 0) {
      launch(w.gpu, "library's input", copy_planes_kernel,
             device::CopyPlanes{.batch = w.batch,
                                .from = from,
                                .from_planes = in().value,
                                .to = packed,
                                .to_planes = x});
      from = packed;
    }
    w.gpu.convolve({.x = from,
                    .weight = weight(w),
                    .y = made,
                    .examples = w.batch.capacity,
                    .channels = x.channels,
                    .height = x.height,
                    .width = x.width,
                    .columns = y.channels,
                    .kernel = conv_.kernel,
                    .stride = conv_.stride,
                    .pad = conv_.pad,
                    .precision = precision_});
    launch(w.gpu, "library's output", copy_planes_kernel,
           device::CopyPlanes{.batch = w.batch,
                              .from = made,
                              .from_planes = y,
                              .to = w.value(out()),
                              .to_planes = out().value,
                              .bias = bias(w),
                              .epilogue = output_epilogue()});
  }

  void reserve(const LayoutChoices& choices, CudaStorage& s) override {
    by_library_ = choices.evaluates_by_library;
    if (by_library_)
      s.library_scratch = std::max<std::int64_t>(
          s.library_scratch,
          without_border(in().value).size() + std::int64_t{without_border(out().value).size()});
    plan_forward_and_gradient(s);
    if (gives_input_gradient())
      for (int phase = 0; phase < conv_.stride * conv_.stride; ++phase)
        plan_input_gradient(s, phase / conv_.stride, phase % conv_.stride);
    if (gains_from_tensor_cores()) {
      precision_ = choices.precision;
      if (gradient_.terms_per_example > 1)  // see WeightGradientSum
        gradient_.precision = choices.precision;
    }
    if (gradient_.precision == Precision::tf32 && !choices.transforms) plan_patches(choices.limits);
    const int width = gradient_.patch.lines > 0 ? patch_columns(gradient_.columns) : 0;
    reserve_products(s, gradient_tiles(gradient_.rows, gradient_.columns, width));
  }

  /// Returns the width of the border of zeros [pixels] that the output's gradient needs along one
  /// axis. The gradient of input pixel i is a sum over output pixels (i + pad - k) / stride, where
  /// k is the position in the kernel. Some of these output pixels lie outside the output; the
  /// border must be wide enough to hold them. in, out: sizes of input and output along the axis.
  int gradient_border(int in, int out) const {
    int border = 0;
    for (int i = 0; i < in; ++i)
      for (int k = 0; k < conv_.kernel; ++k) {
        const int from = i + conv_.pad - k;
        if ((from % conv_.stride + conv_.stride) % conv_.stride != 0) continue;
        const int o = from >= 0 ? from / conv_.stride : -((-from) / conv_.stride);
        border = std::max({border, -o, o - (out - 1)});
      }
    return border;
  }

  void plan_forward_and_gradient(CudaStorage& s) {
    const Planes x = in().value;
    const Planes y = out().value;
    const Planes dy = out().gradient;
    const int taps = conv_.kernel * conv_.kernel;
    const int pixels = y.height * y.width;
    const int rows = x.channels * taps;
    const auto at_output = [&](const Planes& p) {
      return each(s.table(pixels, [&](int i) { return p.at(0, i / y.width, i % y.width); }), pixels,
                  p.size());
    };
    const AxisPlan corner = each(s.table(pixels,
                                         [&](int i) {
                                           return x.at(0, i / y.width * conv_.stride - conv_.pad,
                                                       i % y.width * conv_.stride - conv_.pad);
                                         }),
                                 pixels, x.size());
    const AxisPlan tap = s.table(rows, [&](int k) {
      return k / taps * x.plane() + k % taps / conv_.kernel * x.row() + k % conv_.kernel;
    });
    forward_ = {.a = {corner, tap, false},
                .b = {strided(rows), strided(1), true},
                .out_row = at_output(y),
                .out_column = strided(y.plane()),
                .rows_per_example = pixels,
                .terms = rows,
                .columns = conv_.out_channels};
    gradient_ = {.x = {tap, corner, true},
                 .dy = {strided(dy.plane()), at_output(dy), true},
                 .rows = rows,
                 .columns = conv_.out_channels,
                 .terms_per_example = pixels};
  }

  /// Plans the matrix product that computes the gradient of those input pixels (iy, ix) for which
  /// (iy + pad) % stride is phase_y and (ix + pad) % stride is phase_x. Their gradients depend on
  /// the same part of the convolution's kernel: the rows with index phase_y and the columns with
  /// index phase_x modulo the stride. Chooses the product's kernel and index tables.
  void plan_input_gradient(CudaStorage& s, int phase_y, int phase_x) {
    const Planes dx = in().gradient;
    const Planes dy = out().gradient;
    const int stride = conv_.stride;
    const auto first = [&](int phase) { return ((phase - conv_.pad) % stride + stride) % stride; };
    const auto count = [&](int size, int from) {
      return size > from ? (size - from - 1) / stride + 1 : 0;
    };
    const auto taps = [&](int phase) {
      return conv_.kernel > phase ? (conv_.kernel - phase - 1) / stride + 1 : 0;
    };
    const int y0 = first(phase_y);
    const int x0 = first(phase_x);
    const int height = count(dx.height, y0);
    const int width = count(dx.width, x0);
    const int taps_y = taps(phase_y);
    const int taps_x = taps(phase_x);
    const int pixels = height * width;
    const int terms = dy.channels * taps_y * taps_x;
    if (pixels == 0) return;
    const auto pixel = [&](int i) {
      return std::pair{y0 + i / width * stride, x0 + i % width * stride};
    };
    // The gradient of input row iy = q stride + phase_y - pad is a sum over taps a = 0, 1, ...: tap
    // a is kernel row phase_y + a stride times output row q - a. The same formula holds for
    // columns. The table has the offset of the last tap, which is the smallest, so that all other
    // taps have offsets >= 0 relative to it.
    const AxisPlan last = terms == 0 ? strided(0) : s.table(pixels, [&](int i) {
      const auto [iy, ix] = pixel(i);
      return dy.at(0, (iy + conv_.pad - phase_y) / stride - (taps_y - 1),
                   (ix + conv_.pad - phase_x) / stride - (taps_x - 1));
    });
    struct Term {
      int channel, a, b;
    };
    // Summands are in the order in which PatchProduct reads dy from memory: the last taps first.
    const auto term = [&](int t) {
      return Term{t / (taps_y * taps_x), taps_y - 1 - t % (taps_y * taps_x) / taps_x,
                  taps_x - 1 - t % taps_x};
    };
    const std::int64_t taps_of_channel = std::int64_t{conv_.kernel} * conv_.kernel;
    const AxisPlan output = s.table(terms, [&](int t) {
      const auto [channel, a, b] = term(t);
      return channel * dy.plane() + (taps_y - 1 - a) * dy.row() + (taps_x - 1 - b);
    });
    const AxisPlan weight = s.table(terms, [&](int t) {
      const auto [channel, a, b] = term(t);
      return (std::int64_t{channel} * dx.channels) * taps_of_channel +
             (phase_y + std::int64_t{a} * stride) * conv_.kernel + phase_x +
             std::int64_t{b} * stride;
    });
    const Planes x = in().value;
    const auto at_input = [&](const Planes& planes) {
      return each(s.table(pixels,
                          [&](int i) {
                            const auto [iy, ix] = pixel(i);
                            return planes.at(0, iy, ix);
                          }),
                  pixels, planes.size());
    };
    input_gradient_.push_back({.a = {each(last, pixels, dy.size()), output, false},
                               .b = {strided(taps_of_channel), weight, true},
                               .out_row = at_input(dx),
                               .out_column = strided(dx.plane()),
                               .y_row = input_function_ ? at_input(x) : AxisPlan{},
                               .y_column = strided(input_function_ ? x.plane() : 1),
                               .rows_per_example = pixels,
                               .terms = terms,
                               .columns = dx.channels});
  }

  void plan_patches(const DeviceLimits& limits) {
    const Planes& x = in().value;
    const Planes& dy = out().gradient;
    if (conv_.kernel != 3 || x.channels < kMinPatchChannels) return;
    constexpr std::size_t kStatic = 1024;  // static shared memory of the kernels [bytes]
    const std::size_t shared = patch_shared_bytes(limits) - kStatic;
    const int corner = x.border - conv_.pad;
    gradient_.patch = conv_patch({.x = x, .dy = dy, .stride = conv_.stride, .corner = corner},
                                 gradient_.columns, shared);
    if (conv_.stride != 1) return;
    const auto patch = [&](ProductPlan& p, const Planes& from, const Planes& to, int first) {
      p.patch = pixel_patch({.x = from, .height = to.height, .width = to.width, .corner = first},
                            p.columns, shared);
    };
    patch(forward_, x, dy, corner);
    for (ProductPlan& p : input_gradient_) patch(p, dy, x, dy.border - (2 - conv_.pad));
  }

  Conv2d conv_;
  bool by_library_ = false;
};

}  // namespace cudp::cuda::inline CUDP_SIMT
