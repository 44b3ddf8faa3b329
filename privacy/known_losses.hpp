#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "privacy/mechanism/mechanism.hpp"
#include "privacy/mechanism/privacy_bound.hpp"
#include "privacy/pld/allocation.hpp"

namespace cudp::privacy {

/// Key of the cache of epsilons (known_epsilon()): all arguments on which the epsilon of a
/// composition depends, if it is computed from the privacy loss distribution of one direction (add
/// or remove).
struct LossQuestion {
  std::vector<Release> releases;
  Change change = Change::add;
  std::uint64_t group = 1;
  std::size_t max_distinct_releases = 0;
  pld::AllocationGrid grid = {};
  bool from_below = true;
  double interval = 0.0, coarseness = 1.0, delta = 0.0;
  bool operator==(const LossQuestion&) const = default;
};

/// Returns the epsilon for exactly this key from this thread's cache of recent results, or nullopt.
/// The cache saves time because a training computes the bound of its plan several times: to
/// calibrate the noise, check the budget, and write certificates.
std::optional<PrivacyBound> known_epsilon(const LossQuestion& question);
/// Adds a result to this thread's cache of known_epsilon(). Results for long lists of releases are
/// not kept.
void keep_epsilon(LossQuestion question, const PrivacyBound& answer);

/// Returns epsilon_by_rdp() of these arguments. Takes the result from the bound store
/// (use_bound_store()) if one is in use and contains it.
PrivacyBound known_epsilon_by_rdp(std::span<const Release> releases, double delta,
                                  const Neighbours& neighbours, std::span<const double> orders);

/// Interface of a store of bounds on epsilon that several processes share. The key of a bound
/// (question) is a text that contains all arguments of its computation exactly, so a stored bound
/// is the one that the computation would return.
class BoundStore {
 public:
  BoundStore() = default;
  BoundStore(const BoundStore&) = delete;
  BoundStore& operator=(const BoundStore&) = delete;
  virtual ~BoundStore() = default;
  virtual std::optional<PrivacyBound> find(const std::string& question) const = 0;
  virtual void add(const std::string& question, const PrivacyBound& bound) = 0;
};

/// Sets the store that known_epsilon() and known_epsilon_by_rdp() use in addition to this thread's
/// cache; null: no store, which is the initial state. Call it while no other thread uses an
/// accountant.
void use_bound_store(BoundStore* store);
/// Returns the store that use_bound_store() has set; null if there is none.
BoundStore* used_bound_store();

}  // namespace cudp::privacy
