#include "runtime/device/cpu/layout.hpp"

#include <variant>

#include "runtime/base/error.hpp"

namespace cudp::cpu {
namespace {

constexpr int kColumnBlock = 16;

int padded(int n) { return (n + kColumnBlock - 1) / kColumnBlock * kColumnBlock; }
std::int32_t narrow(std::int64_t n) {
  ensure(n >= 0 && n < (std::int64_t{1} << 31), "the model is too large for 32-bit offsets");
  return static_cast<std::int32_t>(n);
}

bool is_activation(const Layer& l) { return std::holds_alternative<Activate>(l); }
bool runs_one_at_a_time(const Layer& l) {
  return !is_activation(l) && !std::holds_alternative<Dense>(l);
}

/// Lays out edges, then ops with their tables.
class GraphBuilder {
 public:
  explicit GraphBuilder(const Network& network) { g_.network = &network; }

  Graph build() {
    const auto& layers = g_.network->layers;
    for (std::size_t i = 0; i < layers.size(); ++i)
      if (runs_one_at_a_time(layers[i].layer)) g_.first_batched = i + 1;
    g_.where.resize(g_.network->parameter_count);
    g_.where_transposed.assign(g_.network->parameter_count, -1);
    add_edge(g_.network->input, 0, true);
    bool trainable_before = false;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      Op op;
      op.layer = &layers[i];
      op.in = static_cast<int>(g_.edges.size()) - 1;
      op.gives_input_gradient = trainable_before;
      // In place, unless the value before is still needed: by a preceding function's own gradient.
      const bool in_place =
          is_activation(layers[i].layer) && !(i > 0 && is_activation(layers[i - 1].layer));
      if (!in_place) add_edge(layers[i].out, i + 1, false);
      op.out = static_cast<int>(g_.edges.size()) - 1;
      std::visit([&](const auto& l) { fill(op, l); }, layers[i].layer);
      if (op.has_parameters() && !trainable_before) {
        trainable_before = true;
        g_.first_with_gradient = i;
      }
      g_.ops.push_back(std::move(op));
    }
    place_gradients();
    if (g_.direct_size == 0 && g_.packed_size > 128 * 1024) g_.chunk = kMaxChunk;
    narrow(g_.value_size * kMaxChunk);  // the offsets of examples in flight are 32-bit too
    narrow(g_.batched_gradient_size * kMaxChunk);
    return std::move(g_);
  }

 private:
  /// The edge before layer `consumer`.
  void add_edge(const Shape& s, std::size_t consumer, bool is_input) {
    const auto& layers = g_.network->layers;
    const bool plain =
        consumer < layers.size() && (std::holds_alternative<Conv2d>(layers[consumer].layer) ||
                                     std::holds_alternative<Dense>(layers[consumer].layer));
    while (consumer < layers.size() && is_activation(layers[consumer].layer)) ++consumer;
    Edge e;
    e.layout = {s.channels, s.height, s.width, is_input && plain ? s.channels : padded(s.channels),
                0};
    if (consumer < layers.size())
      if (const auto* conv = std::get_if<Conv2d>(&layers[consumer].layer))
        e.layout.border = conv->pad;
    e.value = g_.value_size;
    g_.value_size += padded(narrow(e.layout.size()));
    g_.edges.push_back(e);
  }

  void place_gradients() {
    for (std::size_t i = g_.first_batched; i < g_.ops.size(); ++i) {
      g_.edges[static_cast<std::size_t>(g_.ops[i].in)].batched = true;
      g_.edges[static_cast<std::size_t>(g_.ops[i].out)].batched = true;
    }
    g_.edges.back().batched = true;  // the loss writes it for the whole batch
    for (Edge& e : g_.edges) {
      std::int64_t& size = e.batched ? g_.batched_gradient_size : g_.shared_gradient_size;
      e.gradient = size;
      size += padded(narrow(e.layout.size()));
    }
  }

  const ImageLayout& in(const Op& op) const {
    return g_.edges[static_cast<std::size_t>(op.in)].layout;
  }
  const ImageLayout& out(const Op& op) const {
    return g_.edges[static_cast<std::size_t>(op.out)].layout;
  }

  void place_parameters(Op& op, int rows, int columns) {
    op.rows = rows;
    op.columns = columns;
    op.packed = g_.packed_size;
    g_.packed_size += op.packed_size();
    const auto& bias = g_.network->parameters[op.layer->first_parameter + 1];
    for (std::size_t i = 0; i < bias.size; ++i)
      g_.where[bias.offset + i] = narrow(op.packed + static_cast<std::int64_t>(rows) * columns +
                                         static_cast<std::int64_t>(i));
    for (int r = 0; r < rows; ++r)
      op.packed_row.push_back(narrow(static_cast<std::int64_t>(r) * columns));
  }

  std::size_t weight_offset(const Op& op) const {
    return g_.network->parameters[op.layer->first_parameter].offset;
  }

  void fill(Op& op, const Conv2d& c) {
    const ImageLayout& x = in(op);
    const ImageLayout& y = out(op);
    const int taps = c.kernel * c.kernel;
    place_parameters(op, taps * x.channels, y.stride);
    for (int ky = 0; ky < c.kernel; ++ky)
      for (int kx = 0; kx < c.kernel; ++kx) {
        const std::int32_t tap = narrow(ky * x.row() + static_cast<std::int64_t>(kx) * x.stride);
        for (int c16 = 0; c16 < x.stride; c16 += kColumnBlock) op.input_block.push_back(tap + c16);
        for (int i = 0; i < x.channels; ++i) {
          const auto row = static_cast<std::int32_t>(op.input_of_row.size());
          op.input_of_row.push_back(tap + i);
          op.forward_steps.push_back({op.input_of_row.back(), row * op.columns});
        }
      }
    for (int oy = 0; oy < y.height; ++oy)
      for (int ox = 0; ox < y.width; ++ox) {
        // The kernel's corner lies `pad` pixels outside, where the border is.
        op.in_pixel.push_back(narrow(x.at(oy * c.stride - c.pad, ox * c.stride - c.pad)));
        op.out_pixel.push_back(narrow(y.at(oy, ox)));
        op.weight_steps.push_back({op.in_pixel.back(), op.out_pixel.back()});
      }
    for (int o = 0; o < c.out_channels; ++o) op.input_steps.push_back({o, o * taps * x.stride});

    op.transposed = g_.transposed_size;  // [out][taps][in stride]
    if (op.gives_input_gradient)
      g_.transposed_size += static_cast<std::int64_t>(taps) * c.out_channels * x.stride;
    const std::size_t w = weight_offset(op);  // [out][in][ky][kx]
    for (int o = 0; o < c.out_channels; ++o)
      for (int i = 0; i < x.channels; ++i)
        for (int t = 0; t < taps; ++t) {
          const std::size_t j =
              w +
              (static_cast<std::size_t>(o) * static_cast<std::size_t>(x.channels) +
               static_cast<std::size_t>(i)) *
                  static_cast<std::size_t>(taps) +
              static_cast<std::size_t>(t);
          g_.where[j] =
              narrow(op.packed + (static_cast<std::int64_t>(t) * x.channels + i) * op.columns + o);
          if (op.gives_input_gradient)
            g_.where_transposed[j] =
                narrow(op.transposed + (static_cast<std::int64_t>(o) * taps + t) * x.stride + i);
        }
    op.direct = g_.direct_size;
    g_.direct_size += op.packed_size();
  }

  void fill(Op& op, const Dense& d) {
    const ImageLayout& x = in(op);
    place_parameters(op, x.channels * x.height * x.width, out(op).stride);
    op.transposed = g_.transposed_size;  // [out][input layout]
    if (op.gives_input_gradient) g_.transposed_size += d.out * x.size();
    const std::size_t w = weight_offset(op);  // [out][channel][y][x]
    int row = 0;
    for (int y = 0; y < x.height; ++y)
      for (int px = 0; px < x.width; ++px)
        for (int ch = 0; ch < x.channels; ++ch, ++row) {
          const std::int64_t place = x.at(y, px) + ch;
          op.input_of_row.push_back(narrow(place));
          op.forward_steps.push_back(
              {narrow(place), narrow(static_cast<std::int64_t>(row) * op.columns)});
          const std::int64_t canonical =
              (static_cast<std::int64_t>(ch) * x.height + y) * x.width + px;
          for (int o = 0; o < d.out; ++o) {
            const std::size_t j =
                w + static_cast<std::size_t>(static_cast<std::int64_t>(o) * op.rows + canonical);
            g_.where[j] = narrow(op.packed + static_cast<std::int64_t>(row) * op.columns + o);
            if (op.gives_input_gradient)
              g_.where_transposed[j] = narrow(op.transposed + o * x.size() + place);
          }
        }
    for (int o = 0; o < d.out; ++o) op.input_steps.push_back({o, narrow(o * x.size())});
  }

  void fill(Op& op, const GroupNorm& n) {
    const ImageLayout& x = in(op);
    place_parameters(op, 1, x.stride);
    const std::size_t w = weight_offset(op);
    for (int c = 0; c < x.channels; ++c)
      g_.where[w + static_cast<std::size_t>(c)] = narrow(op.packed + c);
    op.direct = g_.direct_size;
    g_.direct_size += op.packed_size();
    op.statistics = g_.statistics_size;
    g_.statistics_size += 2L * n.groups;
  }

  template <class Pool>
  void fill_pool(Op& op, const Pool& p) {
    op.pool = {in(op), out(op), p.kernel, p.stride};
  }
  void fill(Op& op, const MaxPool2d& p) { fill_pool(op, p); }
  void fill(Op& op, const AvgPool2d& p) { fill_pool(op, p); }
  void fill(Op&, const Activate&) {}

  Graph g_;
};

}  // namespace

Graph build_graph(const Network& network) { return GraphBuilder(network).build(); }

}  // namespace cudp::cpu
