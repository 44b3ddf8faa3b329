#include "runtime/settings/toml_values.hpp"

#include <sstream>

#include "runtime/base/error.hpp"

namespace cudp {
namespace {

std::string at_line(const std::string& source, const toml::source_region& region) {
  return source + ", line " + std::to_string(region.begin.line);
}

}  // namespace

toml::table parse_toml(std::string_view text, const std::string& source) {
  try {
    return toml::parse(text, source);
  } catch (const toml::parse_error& e) {
    throw InputError(at_line(source, e.source()) + ": " + std::string(e.description()));
  }
}

std::string line_of(const toml::node& node, const std::string& source) {
  return at_line(source, node.source());
}

Value toml_value(const toml::node& node, const std::string& place, const char* expected) {
  if (const auto* b = node.as_boolean()) return b->get();
  if (const auto* i = node.as_integer()) return i->get();
  if (const auto* f = node.as_floating_point()) return f->get();
  if (const auto* s = node.as_string()) return s->get();
  std::ostringstream type;
  type << node.type();
  throw InputError(place + ": expected " + expected + ", found " + type.str());
}

}  // namespace cudp
