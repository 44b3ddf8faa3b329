#pragma once
#include <cstddef>
#include <functional>
#include <span>

#include "privacy/mechanism/privacy_bound.hpp"

namespace cudp::privacy {

/// Returns the epsilon at delta that follows from the Renyi divergence `rdp` [nats] of one order:
/// Canonne, Kamath, Steinke 2020 (arXiv:2004.00010), Proposition 12. May be negative; epsilon = 0
/// then holds, too. Rounded up; increases with rdp.
double epsilon_at(double order, double rdp, double delta);
/// Returns the log(delta) at epsilon that follows from the Renyi divergence `rdp` [nats] of one
/// order: the smaller one of two bounds. One is by the theorem of epsilon_at(). The other is delta
/// <= sqrt(1 - e^-rdp), by the inequality of Bretagnolle and Huber (Canonne 2022,
/// arXiv:2202.07198). Rounded up; increases with rdp.
double log_delta_at(double order, double rdp, double epsilon);

/// Returns delta = exp(log_delta), rounded up, at most 1 and never 0, because delta = 0 would claim
/// pure DP.
double delta_from_log(double log_delta);

/// Function that returns the Renyi divergence [nats] at the i-th of a list of orders.
using RdpAt = std::function<double(std::size_t i)>;

/// Returns the smallest epsilon at delta that these orders give (epsilon_at), for divergences that
/// are expensive to compute. A Renyi divergence never decreases with its order, so an order is
/// skipped if it would not give the smallest value even with the divergence of a smaller order.
/// That skips all but a few of the default orders. epsilon is +infinity if no order gives a finite
/// one. Throws std::invalid_argument on an order out of range or a negative or NaN divergence.
/// rdp(i): divergence at orders[i].
PrivacyBound lowest_epsilon(std::span<const double> orders, const RdpAt& rdp, double delta);
/// Returns the smallest delta at epsilon, at most 1, that these orders give (log_delta_at). rdp(i):
/// Renyi divergence at orders[i]; orders that cannot give the smallest value are skipped. Throws
/// std::invalid_argument on an order out of range or a negative or NaN divergence.
PrivacyBound lowest_delta(std::span<const double> orders, const RdpAt& rdp, double epsilon);

/// These functions check one argument each: order > 1 and finite, rdp >= 0, delta in (0, 1),
/// epsilon finite and >= 0. They throw std::invalid_argument, with the value, if it is out of
/// range.
void check_order(double order);
void check_rdp(double rdp, double order);
void check_delta(double delta);
void check_epsilon(double epsilon);

}  // namespace cudp::privacy
