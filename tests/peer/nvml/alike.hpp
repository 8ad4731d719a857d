/*
 * alike: do two C functions take and return the same bits?
 *
 * Our declarations have names of their own, so their types aren't NVIDIA's; what is compared is what
 * a call depends on: how many arguments, each one's size and sign, and what a pointer points to.
 */
#pragma once

#include <type_traits>

/* A handle's struct is never complete. */
template <class T, class = void> struct size_of : std::integral_constant<unsigned long, 0> {
};
template <class T>
struct size_of<T, std::void_t<decltype(sizeof(T))>> : std::integral_constant<unsigned long, sizeof(T)> {
};
template <> struct size_of<void> : std::integral_constant<unsigned long, 0> {
};

template <class T, bool = std::is_enum_v<T>> struct number {
	using type = T;
};
template <class T> struct number<T, true> {
	using type = std::underlying_type_t<T>;
};

template <class A, class B> constexpr bool alike()
{
	if constexpr (std::is_pointer_v<A> || std::is_pointer_v<B>) {
		if constexpr (std::is_pointer_v<A> && std::is_pointer_v<B>)
			return alike<std::remove_cv_t<std::remove_pointer_t<A>>,
				     std::remove_cv_t<std::remove_pointer_t<B>>>();
		else
			return false;
	} else if constexpr (std::is_class_v<A> || std::is_class_v<B> || std::is_void_v<A>) {
		return std::is_class_v<A> == std::is_class_v<B> && size_of<A>() == size_of<B>();
	} else {
		return sizeof(A) == sizeof(B) &&
		       std::is_signed_v<typename number<A>::type> ==
			       std::is_signed_v<typename number<B>::type>;
	}
}

template <class A, class B> struct same_call : std::false_type {
};
template <class R, class... As, class S, class... Bs>
	requires(sizeof...(As) == sizeof...(Bs))
struct same_call<R (*)(As...), S (*)(Bs...)>
	: std::bool_constant<alike<R, S>() && (alike<As, Bs>() && ...)> {
};
