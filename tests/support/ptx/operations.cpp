#include "tests/support/ptx/operations.hpp"

namespace cudp::ptx {

const Operation* find_operation(std::string_view name) {
  static const Table table = [] {
    Table t;
    add_integers(t);
    add_floats(t);
    add_comparisons(t);
    add_conversions(t);
    add_memory(t);
    add_warp_operations(t);
    return t;
  }();
  const auto at = table.find(name);
  return at == table.end() ? nullptr : &at->second;
}

}  // namespace cudp::ptx
