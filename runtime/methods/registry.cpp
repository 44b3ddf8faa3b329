#include "runtime/methods/registry.hpp"

#include <algorithm>

#include "runtime/base/error.hpp"
#include "runtime/methods/adaclip.hpp"
#include "runtime/methods/adp_sgd.hpp"
#include "runtime/methods/dp_agd_method.hpp"
#include "runtime/methods/dpis.hpp"
#include "runtime/methods/dpsgd.hpp"
#include "runtime/methods/dpsgd_decay.hpp"
#include "runtime/methods/dpsgd_quantile.hpp"
#include "runtime/methods/norm_bound.hpp"
#include "runtime/methods/objective_perturbation.hpp"
#include "runtime/methods/output_perturbation.hpp"
#include "runtime/methods/privgene.hpp"
#include "runtime/methods/sgd.hpp"

namespace cudp {
namespace {

bool contains(const std::vector<std::string>& list, std::string_view key) {
  return std::ranges::find(list, key) != list.end();
}

bool has_option(const MethodEntry& entry, std::string_view key) {
  return std::ranges::any_of(entry.options, [&](const Option& o) { return o.key == key; });
}

/// Returns whether an option belongs to particular methods only.
bool is_of_methods(std::string_view key) {
  return std::ranges::any_of(methods(), [&](const MethodEntry& entry) {
    return contains(entry.uses, key) || has_option(entry, key);
  });
}

}  // namespace

const std::vector<MethodEntry>& methods() {
  static const std::vector<MethodEntry> table = {
      dpsgd_method(),
      dpsgd_ts_method(),
      dpsgd_decay_method(),
      dpsgd_quantile_method(),
      adp_sgd_method(),
      adaclip_method(),
      dpis_method(),
      sgd_ma_method(),
      sgd_adv_method(),
      norm_bound_method(),
      dp_agd_method(),
      output_perturbation_method(),
      objective_perturbation_method(),
      privgene_method(),
      sgd_method(),
  };
  return table;
}

bool takes(const MethodEntry& method, std::string_view key) {
  return contains(method.uses, key) || has_option(method, key) || !is_of_methods(key);
}

bool ignores(const MethodEntry& method, std::string_view key) {
  return contains(method.ignores, key);
}

std::vector<std::string> method_names() {
  std::vector<std::string> names;
  for (const MethodEntry& entry : methods()) names.push_back(entry.name);
  return names;
}

const MethodEntry* find_method(std::string_view name) {
  const auto found = std::ranges::find(methods(), name, &MethodEntry::name);
  return found == methods().end() ? nullptr : &*found;
}

const MethodEntry& method_entry(std::string_view name) {
  const MethodEntry* const found = find_method(name);
  if (found == nullptr)
    throw InputError("method: expected a known one, found " + std::string(name));
  return *found;
}

}  // namespace cudp
