#include "runtime/device/cuda/layout.hpp"

#include <algorithm>
#include <variant>

#include "kernels/products/tiled_product.hpp"
#include "runtime/base/error.hpp"

namespace cudp::cuda {
namespace {

std::int32_t narrow(std::int64_t n) {
  ensure(n >= 0 && n < (std::int64_t{1} << 31), "the model is too large for 32-bit offsets");
  return static_cast<std::int32_t>(n);
}

bool is_activation(const Layer& l) { return std::holds_alternative<Activate>(l); }

/// Neighbours `step` apart.
AxisPlan strided(std::int64_t step) { return {.inner = narrow(step)}; }

/// How far, over all output pixels that an input pixel's gradient sums over along one side, they
/// lie outside the output. oy = (iy + pad - ky) / stride where that is whole.
int gradient_border(const Conv2d& c, int in, int out) {
  int border = 0;
  for (int i = 0; i < in; ++i)
    for (int k = 0; k < c.kernel; ++k) {
      const int from = i + c.pad - k;
      if ((from % c.stride + c.stride) % c.stride != 0) continue;
      const int o = from >= 0 ? from / c.stride : -((-from) / c.stride);
      border = std::max({border, -o, o - (out - 1)});
    }
  return border;
}

class Builder {
 public:
  Builder(const Network& network, Precision precision, std::int64_t large_dense,
          const DeviceLimits& limits)
      : net_(network), precision_(precision), large_dense_(large_dense), limits_(limits) {}

  DeviceGraph build() {
    add_edges();
    for (Op& op : g_.ops) {
      if (!op.layer->has_parameters()) continue;
      const std::size_t first = op.layer->first_parameter;
      op.parameters = static_cast<std::int64_t>(net_.parameters[first].offset);
      for (std::size_t i = 0; i < op.layer->parameter_count; ++i)
        op.parameter_count += static_cast<std::int64_t>(net_.parameters[first + i].size);
    }
    for (Op& op : g_.ops) std::visit([&](const auto& l) { plan(op, l); }, op.layer->layer);
    for (Op& op : g_.ops) choose_precision(op);
    place_parts();
    return std::move(g_);
  }

 private:
  Edge& in(const Op& op) { return g_.edges[op.in]; }
  Edge& out(const Op& op) { return g_.edges[op.out]; }

  void add_edges() {
    add_edge(net_.input);
    bool trainable_before = false;
    for (std::size_t i = 0; i < net_.layers.size(); ++i) {
      const NetworkLayer& l = net_.layers[i];
      Op op;
      op.layer = &l;
      op.in = g_.edges.size() - 1;
      op.gives_input_gradient = trainable_before;
      trainable_before = trainable_before || l.group >= 0;
      // In place, unless the value before is still needed: by a preceding function's own gradient.
      const bool in_place =
          is_activation(l.layer) && !(i > 0 && is_activation(net_.layers[i - 1].layer));
      if (!in_place) add_edge(l.out);
      op.out = g_.edges.size() - 1;
      if (trainable_before) out(op).has_gradient = true;
      if (const auto* conv = std::get_if<Conv2d>(&l.layer)) {
        in(op).value.border = std::max(in(op).value.border, conv->pad);
        if (op.gives_input_gradient)
          out(op).gradient.border = std::max(gradient_border(*conv, l.in.height, l.out.height),
                                             gradient_border(*conv, l.in.width, l.out.width));
      }
      g_.ops.push_back(std::move(op));
    }
  }

  void add_edge(const Shape& s) {
    const Planes p{s.channels, s.height, s.width, 0};
    g_.edges.push_back({p, p, false});
  }

  /// A table of n entries, entry i given by at(i).
  template <class At>
  AxisPlan table(std::int64_t n, const At& at) {
    const auto place = static_cast<std::int64_t>(g_.tables.size());
    for (std::int64_t i = 0; i < n; ++i) g_.tables.push_back(narrow(at(static_cast<int>(i))));
    return {.table = place};
  }
  /// The same table for every example, `apart` elements from one to the next.
  static AxisPlan each(AxisPlan axis, std::int64_t period, std::int64_t apart) {
    axis.period = narrow(period);
    axis.outer = narrow(apart);
    return axis;
  }
  /// All numbers of an example's planes in PyTorch's order.
  AxisPlan flat(const Planes& p) {
    if (p.border == 0) return strided(1);
    return table(p.pixels(), [&](int i) { return p.place(i); });
  }

  void plan(Op& op, const Conv2d& c) {
    const NetworkLayer& l = *op.layer;
    const Planes x = in(op).value;
    const Planes y = out(op).value;
    const Planes dy = out(op).gradient;
    const int taps = c.kernel * c.kernel;
    const int pixels = l.out.height * l.out.width;
    const int rows = l.in.channels * taps;
    const auto at_output = [&](const Planes& p) {
      return each(table(pixels, [&](int i) { return p.at(0, i / l.out.width, i % l.out.width); }),
                  pixels, p.size());
    };
    const AxisPlan corner = each(table(pixels,
                                       [&](int i) {
                                         return x.at(0, i / l.out.width * c.stride - c.pad,
                                                     i % l.out.width * c.stride - c.pad);
                                       }),
                                 pixels, x.size());
    const AxisPlan tap = table(rows, [&](int k) {
      return k / taps * x.plane() + k % taps / c.kernel * x.row() + k % c.kernel;
    });
    op.forward = {.a = {corner, tap, false},
                  .b = {strided(rows), strided(1), true},
                  .out_row = at_output(y),
                  .out_column = strided(y.plane()),
                  .rows_per_example = pixels,
                  .terms = rows,
                  .columns = c.out_channels};
    op.gradient = {.x = {tap, corner, true},
                   .dy = {strided(dy.plane()), at_output(dy), true},
                   .rows = rows,
                   .columns = c.out_channels,
                   .terms_per_example = pixels};
    if (!op.gives_input_gradient) return;
    for (int phase = 0; phase < c.stride * c.stride; ++phase)
      plan_input_gradient(op, c, phase / c.stride, phase % c.stride);
  }

  /// The input pixels (iy, ix) with iy + pad = phase_y and ix + pad = phase_x modulo the stride:
  /// the kernel's rows and columns of that phase alone reach them.
  void plan_input_gradient(Op& op, const Conv2d& c, int phase_y, int phase_x) {
    const NetworkLayer& l = *op.layer;
    const Planes dx = in(op).gradient;
    const Planes dy = out(op).gradient;
    const auto first = [&](int phase) {
      return ((phase - c.pad) % c.stride + c.stride) % c.stride;
    };
    const auto count = [&](int size, int from) {
      return size > from ? (size - from - 1) / c.stride + 1 : 0;
    };
    const auto taps = [&](int phase) {
      return c.kernel > phase ? (c.kernel - phase - 1) / c.stride + 1 : 0;
    };
    const int y0 = first(phase_y);
    const int x0 = first(phase_x);
    const int height = count(l.in.height, y0);
    const int width = count(l.in.width, x0);
    const int taps_y = taps(phase_y);
    const int taps_x = taps(phase_x);
    const int pixels = height * width;
    const int terms = l.out.channels * taps_y * taps_x;
    if (pixels == 0) return;
    const auto pixel = [&](int i) {
      return std::pair{y0 + i / width * c.stride, x0 + i % width * c.stride};
    };
    // Tap a of this phase is kernel row phase_y + a stride and output row q - a; the table holds
    // the last tap's, so that all offsets are >= 0.
    const AxisPlan last = terms == 0 ? strided(0) : table(pixels, [&](int i) {
      const auto [iy, ix] = pixel(i);
      return dy.at(0, (iy + c.pad - phase_y) / c.stride - (taps_y - 1),
                   (ix + c.pad - phase_x) / c.stride - (taps_x - 1));
    });
    struct Term {
      int channel, a, b;
    };
    const auto term = [&](int t) {
      return Term{t / (taps_y * taps_x), t % (taps_y * taps_x) / taps_x, t % taps_x};
    };
    const std::int64_t taps_of_channel = std::int64_t{c.kernel} * c.kernel;
    op.input_gradient.push_back(
        {.a = {each(last, pixels, dy.size()),
               table(terms,
                     [&](int t) {
                       const auto [channel, a, b] = term(t);
                       return channel * dy.plane() + (taps_y - 1 - a) * dy.row() + (taps_x - 1 - b);
                     }),
               false},
         .b = {strided(taps_of_channel),
               table(terms,
                     [&](int t) {
                       const auto [channel, a, b] = term(t);
                       const int ky = phase_y + a * c.stride;
                       const int kx = phase_x + b * c.stride;
                       return (std::int64_t{channel} * l.in.channels) * taps_of_channel +
                              std::int64_t{ky} * c.kernel + kx;
                     }),
               true},
         .out_row = each(table(pixels,
                               [&](int i) {
                                 const auto [iy, ix] = pixel(i);
                                 return dx.at(0, iy, ix);
                               }),
                         pixels, dx.size()),
         .out_column = strided(dx.plane()),
         .rows_per_example = pixels,
         .terms = terms,
         .columns = l.in.channels});
  }

  void plan(Op& op, const Dense&) {
    const int inputs = op.layer->in.size();
    const int outputs = op.layer->out.size();
    const Planes x = in(op).value;
    const Planes y = out(op).value;
    const Planes dx = in(op).gradient;
    const Planes dy = out(op).gradient;
    ensure(x.border == 0 && dy.border == 0, "a dense layer takes and gives flat vectors");
    op.uses_blas = std::int64_t{inputs} * outputs >= large_dense_ && y.border == 0 &&
                   (!op.gives_input_gradient || dx.border == 0);
    op.forward = {.a = {strided(x.size()), strided(1), true},
                  .b = {strided(inputs), strided(1), true},
                  .out_row = strided(y.size()),
                  .out_column = flat(y),
                  .rows_per_example = 1,
                  .terms = inputs,
                  .columns = outputs};
    op.gradient = {.x = {strided(1), strided(x.size()), false},
                   .dy = {strided(1), strided(dy.size()), false},
                   .rows = inputs,
                   .columns = outputs,
                   .terms_per_example = 1};
    if (op.gives_input_gradient)
      op.input_gradient.push_back({.a = {strided(dy.size()), strided(1), true},
                                   .b = {strided(1), strided(inputs), false},
                                   .out_row = strided(dx.size()),
                                   .out_column = flat(dx),
                                   .rows_per_example = 1,
                                   .terms = outputs,
                                   .columns = inputs});
  }

  void plan(Op& op, const GroupNorm& n) {
    op.statistics = g_.statistics;
    g_.statistics += 2 * std::int64_t{n.groups};
    op.rows = g_.gradient_rows;
    g_.gradient_rows += op.parameter_count;
  }
  void plan(Op&, const MaxPool2d&) {}
  void plan(Op&, const AvgPool2d&) {}
  void plan(Op&, const Activate&) {}

  void choose_precision(Op& op) {
    GradientPlan& g = op.gradient;
    if (std::min(g.rows, g.columns) < kLeastTensorSide && !op.uses_blas) return;
    op.precision = precision_;
    if (g.terms_per_example > 1) g.precision = precision_;  // see WeightGradientSum
    const auto* const conv = std::get_if<Conv2d>(&op.layer->layer);
    if (g.precision != Precision::tf32 || conv == nullptr || conv->kernel != 3 ||
        op.layer->in.channels < kLeastPatchChannels)
      return;
    constexpr std::size_t kStatic = 1024;  // what the kernels have of static shared memory
    const std::size_t shared = patch_shared_bytes(limits_) - kStatic;
    const Planes& x = in(op).value;
    const Planes& dy = out(op).gradient;
    const int corner = x.border - conv->pad;
    g.patch =
        conv_patch({.x = x, .dy = dy, .stride = conv->stride, .corner = corner}, g.columns, shared);
    if (conv->stride != 1) return;
    const auto patch = [&](ProductPlan& p, const Planes& from, const Shape& to, int first) {
      p.patch = pixel_patch({.x = from, .height = to.height, .width = to.width, .corner = first},
                            p.columns, shared);
    };
    patch(op.forward, x, op.layer->out, corner);
    for (ProductPlan& p : op.input_gradient)
      patch(p, dy, op.layer->in, dy.border - (2 - conv->pad));
  }

  /// A layer's squared norm comes in tiles (convolution), in one piece (dense), or by group.
  static int parts_of(const Op& op) {
    if (const auto* n = std::get_if<GroupNorm>(&op.layer->layer)) return n->groups;
    if (std::holds_alternative<Conv2d>(op.layer->layer))
      return gradient_tiles(op.gradient.rows, op.gradient.columns, op.gradient.patch.lines > 0);
    return 1;
  }
  void place_parts() {
    g_.group_parts.push_back(0);
    for (Op& op : g_.ops) {  // layers with parameters are in the order of their groups
      if (op.layer->group < 0) continue;
      op.first_part = g_.group_parts.back();
      g_.group_parts.push_back(op.first_part + parts_of(op));
    }
  }

  const Network& net_;
  Precision precision_;
  std::int64_t large_dense_;
  DeviceLimits limits_;
  DeviceGraph g_;
};

}  // namespace

std::int64_t DeviceGraph::floats_per_example(int groups, int outputs) const {
  std::int64_t floats = statistics + gradient_rows + parts() + outputs + 2;
  floats += 2 * std::int64_t{groups};
  for (const Edge& e : edges) floats += e.value.size() + (e.has_gradient ? e.gradient.size() : 0);
  return floats;
}

bool DeviceGraph::uses_blas() const {
  return std::any_of(ops.begin(), ops.end(), [](const Op& op) { return op.uses_blas; });
}

bool DeviceGraph::uses_tensor_cores() const {
  return std::any_of(ops.begin(), ops.end(),
                     [](const Op& op) { return op.precision == Precision::tf32; });
}

int DeviceGraph::example_group() const {
  static_assert(kSlab % kExampleGroup == 0);
  return uses_blas() ? kSlab : kExampleGroup;
}

DeviceGraph build_device_graph(const Network& network, Precision precision,
                               std::int64_t large_dense, const DeviceLimits& limits) {
  return Builder(network, precision, large_dense, limits).build();
}

}  // namespace cudp::cuda
