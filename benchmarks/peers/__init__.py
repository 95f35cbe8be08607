"""Compare beat with rq cron, rq-scheduler, RedBeat and Celery beat: run three, kill one, count lost and doubled."""
