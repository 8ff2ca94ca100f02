/**
 * Where open rows of a lane stand: what is published at 1 and on, what was moved there with its endpoint up to 0, by when it
 * was accepted. What was in flight when it was moved stands this far before its place until its attempt has ended, so that
 * nothing of the lane is claimed beside it, whatever its place.
 */
const AWAY = 2 ** 40;
/** Replays of blocked heads stand before all others, the last first. */
const FRONT = -2 * AWAY;

/** The position of the row with this place, which is up to 0. */
export const movedTo = (place: string, isInFlight: string) => `${place} - iif(${isInFlight}, ${AWAY}, 0)`;

/** Whether a row in flight may be one that was so before it came into its lane, by its position; there is nothing else behind these. */
export const maybeInFlightBefore = (position: string) => `${position} <= -${AWAY}`;

/** Until where rows may be that were in flight before, of a lane whose first position this is. */
export const lastOfInFlight = (first: string) => `max(${first}, -${AWAY})`;

/** Whether a row that is not in flight any more stands where only those may. */
export const isAwayFromPlace = (position: string) => `${position} > ${FRONT} and ${position} <= -${AWAY}`;

/** Where a row stands when its attempt has ended and it has not. */
export const placeOf = (position: string) => `iif(${isAwayFromPlace(position)}, ${position} + ${AWAY}, ${position})`;

/** The first position before all others, of a lane whose first is this, or null where nothing is open. */
export const inFront = (first: string) => `min(coalesce(${first}, 0), ${FRONT}) - 1`;
